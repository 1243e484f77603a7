#include "member/generation.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <vector>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "member/snapshot_files.h"

namespace member {

std::optional<Generation> Generation::parse(std::string_view name) {
  Generation made;
  const char* end = name.data() + name.size();
  const auto [dash, first] = std::from_chars(name.data(), end, made.term);
  if (first != std::errc() || dash == end || *dash != '-') return std::nullopt;
  const auto [rest, second] = std::from_chars(dash + 1, end, made.index);
  if (second != std::errc() || rest != end || made.name() != name) return std::nullopt;
  return made;
}

std::string store_folder(const Options& options, const Generation& generation) {
  return options.data_dir + "/store/" + generation.name();
}

store::Options store_options(const Options& options, const Generation& generation) {
  return {.directory = store_folder(options, generation),
          .cache_bytes = options.cache_bytes / 3,
          .wal_bytes_max = options.store_wal_bytes_max};
}

Status create_folder(Disk& disk, const std::string& path) {
  std::vector<std::string> above;
  for (std::string made = path; !made.empty();) {
    TRY_ASSIGN(const bool there, disk.exists(made));
    if (there) break;
    const size_t slash = made.rfind('/');
    const std::string parent = slash == std::string::npos ? "." : slash == 0 ? "/" : made.substr(0, slash);
    above.push_back(parent);
    made = parent;
  }
  TRY(disk.create_directory(path));
  for (const std::string& parent : above) TRY(disk.sync_directory(parent));
  return {};
}

std::string current_line(const std::string& name) {
  std::array<char, 16> crc{};
  std::snprintf(crc.data(), crc.size(), "%08x", crc32c(as_bytes(name)));
  return name + " " + crc.data() + "\n";
}

Status write_line(Disk& disk, const std::string& path, const std::string& line) {
  const std::string fresh = path + ".new";
  TRY_ASSIGN(auto file, disk.open(fresh, OpenMode::kCreate));
  TRY(file->truncate(0));
  TRY(file->write(0, as_bytes(line)));
  TRY(file->sync());
  file.reset();
  TRY(disk.rename(fresh, path));
  return disk.sync_directory(path.substr(0, path.rfind('/')));
}

Result<std::optional<std::string>> read_line(Disk& disk, const std::string& path) {
  TRY_ASSIGN(const bool there, disk.exists(path));
  if (!there) return std::optional<std::string>{};
  TRY_ASSIGN(auto file, disk.open(path, OpenMode::kRead));
  std::string text(256, '\0');
  TRY_ASSIGN(const size_t size, file->read(0, std::as_writable_bytes(std::span(text))));
  text.resize(size);
  return text;
}

Status write_current(Disk& disk, const std::string& data_dir, const Generation& generation) {
  return write_line(disk, data_dir + "/CURRENT", current_line(generation.name()));
}

Result<std::optional<Generation>> read_current(Disk& disk, const std::string& data_dir) {
  const std::string path = data_dir + "/CURRENT";
  TRY_ASSIGN(const auto text, read_line(disk, path));
  if (!text) return std::optional<Generation>{};
  const std::string name = text->substr(0, text->find(' '));
  const auto generation = Generation::parse(name);
  if (*text != current_line(name) || !generation) {
    return ::fail(Code::kDataLoss,
                  path + ": damaged: it does not match its own checksum. If there is exactly one folder in " +
                      data_dir +
                      "/store, write its name here again (the message of a start with CURRENT removed helps); "
                      "otherwise restore a backup");
  }
  return generation;
}

bool log_lacks_generation(const wal::WalContents& contents, const Generation& generation) {
  if (generation.index == 0) return false;
  return !contents.mark || contents.mark->applied < generation.index;
}

Status log_generation(wal::Wal& wal, wal::WalContents& contents, const Generation& generation, const store::Meta& store,
                      const std::string& where) {
  const auto [term, index] = generation;
  if (store.applied_index != index || store.applied_term != term) {
    return ::fail(Code::kDataLoss, where + ": CURRENT names generation " + generation.name() +
                                       ", whose store has applied index " + std::to_string(store.applied_index) +
                                       ", but the Raft log has never heard of it: the log is older than the store. "
                                       "Remove this member from the cluster and add it again with an empty data "
                                       "folder, or restore a backup");
  }
  const bool in_log = index > contents.base_index && index <= contents.last_index() &&
                      contents.entries[index - contents.base_index - 1].term == term;
  const bool is_base = index == contents.base_index && term == contents.base_term;
  HardState hard_state = contents.hard_state;
  if (!in_log && !is_base && hard_state.commit > index) {
    return ::fail(Code::kDataLoss, where + ": the Raft log is committed up to index " +
                                       std::to_string(hard_state.commit) + ", but does not contain generation " +
                                       generation.name() + " of the store: they are of different members");
  }
  hard_state.commit = std::max(hard_state.commit, index);
  if (hard_state.term < term) {
    hard_state.term = term;
    hard_state.vote = 0;
  }
  wal::WalBatch batch;
  batch.hard_state = hard_state;
  // No frame of any -wal belongs to this state: the database was synced and its -wal cut before CURRENT named it.
  batch.mark = wal::StoreMark{.applied = index, .done = true};
  // Entries behind it may have been acknowledged. They stay when the log contains what the snapshot ends with; else
  // they follow something that was never decided, and go.
  if (!in_log && !is_base) batch.snapshot = wal::SnapshotRecord{.index = index, .term = term, .data = store.membership};
  TRY(wal.append(batch));
  contents.hard_state = hard_state;
  contents.mark = batch.mark;
  if (batch.snapshot) {
    contents.snapshot = batch.snapshot;
    contents.base_index = index;
    contents.base_term = term;
    contents.entries.clear();
  }
  log_info(
      "the store is the one that came as a snapshot",
      {{"generation", generation.name()}, {"revision", store.revision}, {"log_emptied", batch.snapshot.has_value()}});
  return {};
}

Status remove_leftovers(Disk& disk, const Options& options, const Generation& in_force) {
  const std::string folder = options.data_dir + "/store";
  TRY_ASSIGN(const auto names, disk.list(folder));
  bool removed = false;
  for (const std::string& name : names) {
    const auto generation = Generation::parse(name);
    if (!generation || *generation == in_force) continue;
    TRY(disk.remove_directory(folder + "/" + name));
    removed = true;
  }
  if (removed) TRY(disk.sync_directory(folder));
  // What was fetched for the generation in force, or for one before it.
  TRY_ASSIGN(const auto incoming, list_incoming(disk, options.data_dir));
  for (const Generation& snapshot : incoming) {
    if (snapshot.index <= in_force.index) TRY(disk.remove(incoming_path(options.data_dir, snapshot)));
  }
  const std::string unfinished = options.data_dir + "/CURRENT.new";
  TRY_ASSIGN(const bool there, disk.exists(unfinished));
  if (there) TRY(disk.remove(unfinished));
  return {};
}

}  // namespace member
