// The data folder: who may use it, whose it is, and which store generation is in force.
//
//   <data-dir>/LOCK                     held while the server runs
//   <data-dir>/FOLDER                   one line: a number drawn when the folder was made, and a checksum
//   <data-dir>/CURRENT                  one line: the generation's folder and a checksum
//   <data-dir>/store/<term>-<index>/    one generation of the store
//   <data-dir>/wal/ (or --wal-dir)      the Raft log
//
// Order of creation: FOLDER, store, CURRENT, log. A folder without a log was never in use, unless its store has applied
// something.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/world.h"
#include "member/founding.h"
#include "member/options.h"
#include "store/store.h"
#include "wal/wal.h"

namespace member {

struct DataFolder {
  std::unique_ptr<FileLock> lock;
  std::unique_ptr<wal::Wal> wal;
  wal::WalContents contents;
  std::unique_ptr<store::Store> store;
  // The others remember it: a member that comes back with another folder has forgotten what it promised, and is not let
  // in. etcd refuses such a start, too ("has already been bootstrapped").
  uint64_t id = 0;
  bool is_new = false;  // the caller bootstraps the store, then calls create_log()
  // A crash came between that and the log's first record (founding.h), which the caller writes now.
  bool lacks_founding = false;
};

// kUnavailable: another server uses the folder.
Result<std::unique_ptr<FileLock>> lock_data_folder(Disk& disk, const std::string& data_dir);

// Opens what is there and holds log and store against each other. Errors say what to do: kUnavailable (another server
// uses the folder), kDataLoss (damage), kFailedPrecondition (a newer format; log and store do not belong together).
Result<DataFolder> open_data_folder(World& world, const Options& options);

// What FOLDER has. nullopt: there is none (a folder of an earlier version). kDataLoss: damaged.
Result<std::optional<uint64_t>> read_folder_id(Disk& disk, const std::string& data_dir);
Status write_folder_id(Disk& disk, const std::string& data_dir, uint64_t id);

// The last step of making a new folder: from now on it is a member's. Whose, stands in folder.contents.identity, or
// follows from the options when that is empty.
Status create_log(World& world, const Options& options, DataFolder& folder);

}  // namespace member
