#include "member/data_folder.h"

#include <algorithm>
#include <charconv>

#include "base/log.h"
#include "member/founding.h"
#include "member/generation.h"
#include "raft/message.h"

namespace member {
namespace {

constexpr Generation kFirstGeneration;

std::string wal_folder(const Options& options) {
  return options.wal_dir.empty() ? options.data_dir + "/wal" : options.wal_dir;
}

Status only_generation_hint(Disk& disk, const std::string& data_dir) {
  std::string names;
  if (auto listed = disk.list(data_dir + "/store")) {
    for (const std::string& name : *listed)
      names += " \"" + current_line(name).substr(0, current_line(name).size() - 1) + "\"";
  }
  return ::fail(
      Code::kDataLoss,
      data_dir + "/CURRENT: missing, but there is a Raft log. Restore the file; its one line would be one of:" + names);
}

// A folder that was never a member's: whatever a crash left of its making is made again.
Status make_store(World& world, const Options& options, DataFolder& folder) {
  folder.id = world.random.next() | 1;
  TRY(write_folder_id(world.disk, options.data_dir, folder.id));
  TRY(create_folder(world.disk, options.data_dir + "/store"));
  const std::string path = store_folder(options, kFirstGeneration);
  TRY_ASSIGN(const bool there, world.disk.exists(path));
  TRY_ASSIGN(const auto current, read_current(world.disk, options.data_dir));
  const auto log_is_elsewhere = [&] {
    return ::fail(Code::kFailedPrecondition,
                  wal_folder(options) + ": there is no Raft log here, but the store in " + options.data_dir +
                      " has applied entries of one. Give the right --wal-dir, or restore the log from a backup");
  };
  if (current && *current != kFirstGeneration) return log_is_elsewhere();  // a snapshot was installed
  if (there) {
    auto left = store::Store::open(world.disk, store_options(options, kFirstGeneration), std::nullopt);
    if (!left && current) return ::fail(left.error());  // else: torn while it was being made, never in use
    if (left && (*left)->meta().applied_index > kFoundingIndex) return log_is_elsewhere();
    left = ::fail(Code::kUnknown, "closed");
    TRY(world.disk.remove_directory(path));
  }
  TRY(create_folder(world.disk, path));
  TRY_ASSIGN(folder.store, store::Store::open(world.disk, store_options(options, kFirstGeneration), std::nullopt));
  folder.is_new = true;
  return {};
}

// Of a folder of an earlier version, or one whose file was lost, the store may know it.
Status find_folder_id(World& world, const Options& options, DataFolder& folder) {
  TRY_ASSIGN(const auto found, read_folder_id(world.disk, options.data_dir));
  if (found) {
    folder.id = *found;
    return {};
  }
  TRY_ASSIGN(const auto members, apply::Members::parse(folder.store->meta().membership));
  for (const apply::Member& member : members.list()) {
    if (member.id == folder.contents.identity.member_id) folder.id = member.folder_id;
  }
  if (folder.id == 0) folder.id = world.random.next() | 1;
  return write_folder_id(world.disk, options.data_dir, folder.id);
}

bool is_without_founding(const DataFolder& folder) {
  return folder.contents.last_index() == 0 && !folder.contents.snapshot &&
         folder.store->meta().applied_index == kFoundingIndex;
}

// What the Raft core counts on (raft/message.h).
Status check_limits(const Options& options, const wal::WalContents& contents) {
  const uint64_t last_term = contents.entries.empty() ? contents.base_term : contents.entries.back().term;
  const uint64_t term = std::max(contents.hard_state.term, last_term);
  const uint64_t index = std::max(contents.hard_state.commit, contents.last_index());
  if (term <= raft::kTermMax && index <= raft::kIndexMax) return {};
  const bool of_term = term > raft::kTermMax;
  return ::fail(Code::kDataLoss, wal_folder(options) + ": the Raft log has reached " + (of_term ? "term " : "index ") +
                                     std::to_string(of_term ? term : index) +
                                     ", which no cluster does by itself: another program has spoken to the peer port, "
                                     "or the log is damaged. Remove this member from the cluster and add it again with "
                                     "an empty data folder, or restore a backup");
}

Status check_together(const Options& options, const DataFolder& folder) {
  const uint64_t applied = folder.store->meta().applied_index;
  if (applied > folder.contents.last_index()) {
    return ::fail(Code::kDataLoss, wal_folder(options) + ": the Raft log ends at index " +
                                       std::to_string(folder.contents.last_index()) + ", but the store in " +
                                       options.data_dir + " has applied index " + std::to_string(applied) +
                                       ": the log has lost its end. Restore both from one backup");
  }
  if (applied < folder.contents.base_index) {
    return ::fail(Code::kDataLoss, options.data_dir + ": the store has applied index " + std::to_string(applied) +
                                       ", but the Raft log begins after index " +
                                       std::to_string(folder.contents.base_index) +
                                       ": the store is older than its log. Restore both from one backup");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<FileLock>> lock_data_folder(Disk& disk, const std::string& data_dir) {
  auto lock = disk.lock(data_dir + "/LOCK");
  if (lock || lock.error().code != Code::kUnavailable) return lock;
  return ::fail(Code::kUnavailable, data_dir +
                                        ": another conclave server is using this data folder. Stop it, or "
                                        "give this one another --data-dir");
}

Status write_folder_id(Disk& disk, const std::string& data_dir, uint64_t id) {
  return write_line(disk, data_dir + "/FOLDER", current_line(hex_text(id)));
}

Result<std::optional<uint64_t>> read_folder_id(Disk& disk, const std::string& data_dir) {
  const std::string path = data_dir + "/FOLDER";
  TRY_ASSIGN(const auto text, read_line(disk, path));
  if (!text) return std::optional<uint64_t>{};
  const std::string name = text->substr(0, text->find(' '));
  uint64_t id = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id, 16);
  if (*text != current_line(name) || error != std::errc() || end != name.data() + name.size() || id == 0) {
    return ::fail(
        Code::kDataLoss,
        path + ": damaged: it does not match its own checksum. Remove the file: the store knows what was in it");
  }
  return id;
}

Result<DataFolder> open_data_folder(World& world, const Options& options) {
  DataFolder folder;
  TRY(create_folder(world.disk, options.data_dir));
  TRY_ASSIGN(folder.lock, lock_data_folder(world.disk, options.data_dir));
  TRY_ASSIGN(const bool has_log, wal::Wal::exists(world.disk, wal_folder(options)));
  if (!has_log) {
    TRY(make_store(world, options, folder));
    return folder;
  }
  TRY_ASSIGN(auto opened,
             wal::Wal::open(world.disk, {.folder = wal_folder(options), .segment_bytes = options.log_segment_bytes}));
  folder.wal = std::move(opened.wal);
  folder.contents = std::move(opened.contents);
  for (const std::string& note : folder.contents.notes) log_warn(note);
  TRY(check_limits(options, folder.contents));
  TRY_ASSIGN(const auto generation, read_current(world.disk, options.data_dir));
  if (!generation) TRY(only_generation_hint(world.disk, options.data_dir));
  const bool is_fresh = log_lacks_generation(folder.contents, *generation);
  std::optional<store::Mark> mark;
  if (const auto& logged = folder.contents.mark; logged && !is_fresh) {
    mark = store::Mark{logged->applied, logged->salt1, logged->salt2, logged->frames, logged->done};
  }
  TRY_ASSIGN(folder.store, store::Store::open(world.disk, store_options(options, *generation), mark));
  if (is_fresh) {
    // Its name may be known to the system's cache only; once the log is emptied there is no way back.
    TRY(world.disk.sync_directory(options.data_dir));
    TRY(log_generation(*folder.wal, folder.contents, *generation, folder.store->meta(), options.data_dir));
  }
  TRY(find_folder_id(world, options, folder));
  folder.lacks_founding = is_without_founding(folder);
  if (!folder.lacks_founding) TRY(check_together(options, folder));
  TRY(remove_leftovers(world.disk, options, *generation));
  return folder;
}

Status create_log(World& world, const Options& options, DataFolder& folder) {
  const bool is_told = folder.contents.identity != wal::Identity();
  const wal::Identity identity = is_told ? folder.contents.identity : identity_of(options);
  TRY(write_current(world.disk, options.data_dir, kFirstGeneration));
  TRY(create_folder(world.disk, wal_folder(options)));
  TRY_ASSIGN(folder.wal,
             wal::Wal::create(world.disk, {.folder = wal_folder(options), .segment_bytes = options.log_segment_bytes},
                              identity, world.random));
  folder.contents = {};
  folder.contents.identity = identity;
  return {};
}

}  // namespace member
