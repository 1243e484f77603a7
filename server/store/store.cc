// Opening a store: what is on disk is held against the last mark before SQLite sees it.
#include "store/store.h"

#include "store/create.h"
#include "store/format.h"
#include "store/sqlite_store.h"
#include "store/wal_scan.h"

namespace store {

namespace {

// The -wal as SQLite is to find it: there (with a durable name, or a crash could take away what a mark speaks of), and
// empty unless its header is valid.
Status prepare_wal(Vfs& vfs, const WalScan& scan, bool exists) {
  if (exists && (scan.header_valid || scan.file_bytes == 0)) return {};
  TRY_ASSIGN(auto file, vfs.disk().open(vfs.path(kWalName), OpenMode::kCreate));
  TRY(file->truncate(0));
  return vfs.disk().sync_directory(vfs.directory());
}

Result<WalScan> scan_existing(Vfs& vfs, bool exists) {
  if (!exists) return WalScan();
  TRY_ASSIGN(auto file, vfs.disk().open(vfs.path(kWalName), OpenMode::kRead));
  return scan_wal(*file, vfs.frames());
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(Disk& disk, const Options& options, const std::optional<Mark>& mark) {
  auto vfs = std::make_unique<Vfs>(disk, options.directory);
  const std::string path = vfs->path(kDatabaseName);
  TRY_ASSIGN(const bool exists, disk.exists(path));
  TRY_ASSIGN(const bool wal_exists, disk.exists(vfs->path(kWalName)));
  if (!exists) {
    if (mark || wal_exists) return fail(Code::kDataLoss, path + ": is missing" + kAdviceDamage);
    TRY(create_database(*vfs));
  }
  TRY_ASSIGN(const WalScan scan, scan_existing(*vfs, wal_exists));
  TRY_ASSIGN(auto first_page, inspect_first_page(*vfs, scan));
  TRY(check_mark(scan, mark, vfs->path(kWalName)));
  TRY(prepare_wal(*vfs, scan, wal_exists));
  vfs->set_first_page(std::move(first_page));
  TRY(vfs->open_for_sync());

  TRY_ASSIGN(auto store, SqliteStore::make(std::move(vfs), options));
  if (store->frames() != scan.committed) {
    return fail(Code::kDataLoss, path + "-wal: " + std::to_string(store->frames()) + " frames are in use where " +
                                     std::to_string(scan.committed) + " were found" + kAdviceDamage);
  }
  if (mark && store->meta().applied_index < mark->applied) {
    return fail(Code::kDataLoss, path + ": has applied entry " + std::to_string(store->meta().applied_index) +
                                     " where the log says " + std::to_string(mark->applied) + kAdviceDamage);
  }
  store->distrust_wal(wal_bytes_of(scan.committed));
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace store
