#include "member/data_folder.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/log.h"

namespace member {
namespace {

constexpr const char* kFirstGeneration = "0-0";

// The first eight bytes of the SHA-1, big end first: etcd's way to make an id.
uint64_t id_of(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  CHECK(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) == 1, "sha1");
  uint64_t id = 0;
  for (int i = 0; i < 8; ++i) id = id << 8 | digest[static_cast<size_t>(i)];
  return id;
}

std::string wal_folder(const Options& options) {
  return options.wal_dir.empty() ? options.data_dir + "/wal" : options.wal_dir;
}

// A folder that is there after a power cut, too: each name that is new is synced in the folder above it.
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

std::string current_line(const std::string& generation) {
  std::array<char, 16> crc{};
  std::snprintf(crc.data(), crc.size(), "%08x", crc32c(as_bytes(generation)));
  return generation + " " + crc.data() + "\n";
}

Status write_current(Disk& disk, const std::string& data_dir, const std::string& generation) {
  const std::string path = data_dir + "/CURRENT";
  const std::string fresh = path + ".new";
  TRY_ASSIGN(auto file, disk.open(fresh, OpenMode::kCreate));
  TRY(file->truncate(0));
  TRY(file->write(0, as_bytes(current_line(generation))));
  TRY(file->sync());
  file.reset();
  TRY(disk.rename(fresh, path));
  return disk.sync_directory(data_dir);
}

Result<std::optional<std::string>> read_current(Disk& disk, const std::string& data_dir) {
  const std::string path = data_dir + "/CURRENT";
  TRY_ASSIGN(const bool there, disk.exists(path));
  if (!there) return std::optional<std::string>{};
  TRY_ASSIGN(auto file, disk.open(path, OpenMode::kRead));
  std::string text(256, '\0');
  TRY_ASSIGN(const size_t size, file->read(0, std::as_writable_bytes(std::span(text))));
  text.resize(size);
  const std::string generation = text.substr(0, text.find(' '));
  if (text != current_line(generation)) {
    return ::fail(Code::kDataLoss,
                  path + ": damaged: it does not match its own checksum. If there is exactly one folder in " +
                      data_dir +
                      "/store, write its name here again (the message of a start with CURRENT removed helps); "
                      "otherwise restore a backup");
  }
  return std::optional(generation);
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

std::string store_folder(const Options& options, const std::string& generation) {
  return options.data_dir + "/store/" + generation;
}

store::Options store_options(const Options& options, const std::string& generation) {
  return {.directory = store_folder(options, generation),
          .cache_bytes = options.cache_bytes / 3,
          .wal_bytes_max = options.store_wal_bytes_max};
}

// A folder that was never a member's: whatever a crash left of its making is made again.
Status make_store(World& world, const Options& options, DataFolder& folder) {
  TRY(create_folder(world.disk, options.data_dir + "/store"));
  const std::string path = store_folder(options, kFirstGeneration);
  TRY_ASSIGN(const bool there, world.disk.exists(path));
  if (there) {
    TRY_ASSIGN(const bool was_finished, world.disk.exists(options.data_dir + "/CURRENT"));
    auto left = store::Store::open(world.disk, store_options(options, kFirstGeneration), std::nullopt);
    if (!left && was_finished) return ::fail(left.error());  // else: torn while it was being made, never in use
    if (left && (*left)->meta().applied_index > 0) {
      return ::fail(Code::kFailedPrecondition,
                    wal_folder(options) + ": there is no Raft log here, but the store in " + options.data_dir +
                        " has applied entries of one. Give the right --wal-dir, or restore the log from a backup");
    }
    left = ::fail(Code::kUnknown, "closed");
    TRY(world.disk.remove_directory(path));
  }
  TRY(create_folder(world.disk, path));
  TRY_ASSIGN(folder.store, store::Store::open(world.disk, store_options(options, kFirstGeneration), std::nullopt));
  folder.is_new = true;
  return {};
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

wal::Identity identity_of(const Options& options) {
  std::vector<std::string> urls = options.peer_urls;
  std::sort(urls.begin(), urls.end());
  std::string text;
  for (const std::string& url : urls) text += url;
  wal::Identity identity;
  identity.member_id = id_of(text + options.cluster_token);
  std::string members;
  for (int shift = 56; shift >= 0; shift -= 8) members.push_back(static_cast<char>(identity.member_id >> shift & 0xff));
  identity.cluster_id = id_of(members);
  return identity;
}

Result<DataFolder> open_data_folder(World& world, const Options& options) {
  DataFolder folder;
  TRY(create_folder(world.disk, options.data_dir));
  auto lock = world.disk.lock(options.data_dir + "/LOCK");
  if (!lock) {
    if (lock.error().code != Code::kUnavailable) return ::fail(lock.error());
    return ::fail(Code::kUnavailable, options.data_dir +
                                          ": another conclave server is using this data folder. Stop it, or "
                                          "give this one another --data-dir");
  }
  folder.lock = std::move(*lock);
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
  TRY_ASSIGN(const auto generation, read_current(world.disk, options.data_dir));
  if (!generation) TRY(only_generation_hint(world.disk, options.data_dir));
  std::optional<store::Mark> mark;
  if (const auto& logged = folder.contents.mark) {
    mark = store::Mark{logged->applied, logged->salt1, logged->salt2, logged->frames, logged->done};
  }
  TRY_ASSIGN(folder.store, store::Store::open(world.disk, store_options(options, *generation), mark));
  TRY(check_together(options, folder));
  return folder;
}

Status create_log(World& world, const Options& options, DataFolder& folder) {
  TRY(write_current(world.disk, options.data_dir, kFirstGeneration));
  TRY(create_folder(world.disk, wal_folder(options)));
  const wal::Identity identity = identity_of(options);
  TRY_ASSIGN(folder.wal,
             wal::Wal::create(world.disk, {.folder = wal_folder(options), .segment_bytes = options.log_segment_bytes},
                              identity, world.random));
  folder.contents = {};
  folder.contents.identity = identity;
  return {};
}

}  // namespace member
