// What the program under test calls: base/disk.h over the state in memory.
#include <algorithm>

#include "base/memory_disk.h"

using memory_disk::Change;
using memory_disk::NodePointer;
using memory_disk::State;

tl::unexpected<Error> MemoryDisk::not_found(const Call& call) {
  return failed(call, Code::kNotFound, "No such file or directory");
}

class MemoryDisk::MemoryFile : public File {
 public:
  MemoryFile(MemoryDisk& disk, std::string path, NodePointer node, bool writable, uint64_t epoch)
      : disk_(disk), path_(std::move(path)), node_(std::move(node)), writable_(writable), epoch_(epoch) {}

  Result<size_t> read(uint64_t offset, std::span<std::byte> into) override {
    const Call call{Operation::kRead, path_, offset, into.size(), false};
    disk_.announce(call);
    MutexLock lock(disk_.mutex_);
    TRY(enter(call).status);
    if (offset >= node_->now.size()) return size_t{0};
    const size_t bytes = std::min<uint64_t>(into.size(), node_->now.size() - offset);
    std::copy_n(as_bytes(node_->now).begin() + static_cast<ptrdiff_t>(offset), bytes, into.begin());
    return bytes;
  }

  Status write(uint64_t offset, BytesView from) override {
    const Call call{Operation::kWrite, path_, offset, from.size(), true};
    disk_.announce(call);
    MutexLock lock(disk_.mutex_);
    Verdict verdict = enter(call);
    uint64_t bytes = from.size();
    if (!verdict.status && !verdict.in_flight) bytes = std::min<uint64_t>(bytes, verdict.partial_bytes);
    const uint64_t end_max = node_->now.size() + disk_.room();
    if (verdict.status && offset + bytes > end_max) {
      bytes = end_max > offset ? end_max - offset : 0;
      verdict.status = failed(call, Code::kResourceExhausted, kNoSpace);
    }
    if (bytes > 0) {
      State::change(*node_, {Change::Kind::kWrite, offset, Bytes(as_text(from.first(bytes)))}, verdict.in_flight);
    }
    return verdict.status;
  }

  Status sync() override {
    const Call call{Operation::kSync, path_, 0, 0, true};
    disk_.announce(call);
    MutexLock lock(disk_.mutex_);
    const Verdict verdict = enter(call);
    if (verdict.status) State::sync(*node_);
    if (verdict.loses_unsynced) node_->unsynced.clear();
    return verdict.status;
  }

  Status truncate(uint64_t size) override { return resize(Operation::kTruncate, Change::Kind::kTruncate, size); }
  Status allocate(uint64_t size) override { return resize(Operation::kAllocate, Change::Kind::kAllocate, size); }

  Result<uint64_t> size() override {
    const Call call{Operation::kSize, path_, 0, 0, false};
    disk_.announce(call);
    MutexLock lock(disk_.mutex_);
    TRY(enter(call).status);
    return node_->now.size();
  }

 private:
  Verdict enter(const Call& call) REQUIRES(disk_.mutex_) {
    if (epoch_ != disk_.epoch_) return {failed(call, Code::kDataLoss, "the file was open when the machine went down")};
    if (call.change && !writable_) return {failed(call, Code::kDataLoss, "Bad file descriptor")};
    return disk_.admit(call);
  }

  Status resize(Operation operation, Change::Kind kind, uint64_t size) {
    const Call call{operation, path_, 0, size, true};
    disk_.announce(call);
    MutexLock lock(disk_.mutex_);
    const Verdict verdict = enter(call);
    if (!verdict.status && !verdict.in_flight) return verdict.status;
    if (verdict.status && size > node_->now.size() + disk_.room()) {
      return failed(call, Code::kResourceExhausted, kNoSpace);
    }
    State::change(*node_, {kind, size, {}}, verdict.in_flight);
    return verdict.status;
  }

  MemoryDisk& disk_;
  const std::string path_;
  const NodePointer node_;
  const bool writable_;
  const uint64_t epoch_;
};

class MemoryDisk::MemoryLock : public FileLock {
 public:
  MemoryLock(MemoryDisk& disk, std::string path, uint64_t epoch) : disk_(disk), path_(std::move(path)), epoch_(epoch) {}
  ~MemoryLock() override {
    MutexLock lock(disk_.mutex_);
    if (epoch_ == disk_.epoch_) disk_.locked_.erase(path_);
  }

 private:
  MemoryDisk& disk_;
  const std::string path_;
  const uint64_t epoch_;
};

Result<std::unique_ptr<File>> MemoryDisk::open(const std::string& path, OpenMode mode) {
  const bool may_create = mode == OpenMode::kCreate || mode == OpenMode::kCreateNew;
  Call call{Operation::kOpen, path, 0, 0, false};
  if (may_create) {
    MutexLock lock(mutex_);
    call.change = state_.find(path).node == nullptr;
  }
  announce(call);
  MutexLock lock(mutex_);
  const Verdict verdict = admit(call);
  auto place = state_.find(path);
  if (verdict.in_flight && place.directory && !place.node) state_.link(place, false);
  TRY(verdict.status);
  if (!place.directory || (!place.node && !may_create)) return not_found(call);
  if (place.node && mode == OpenMode::kCreateNew) return failed(call, Code::kAlreadyExists, "File exists");
  if (place.node && place.node->directory) return failed(call, Code::kDataLoss, "Is a directory");
  if (!place.node) place.node = state_.link(place, false);
  return std::make_unique<MemoryFile>(*this, path, place.node, mode != OpenMode::kRead, epoch_);
}

Status MemoryDisk::remove(const std::string& path) {
  const Call call{Operation::kRemove, path, 0, 0, true};
  announce(call);
  MutexLock lock(mutex_);
  const Verdict verdict = admit(call);
  if (!verdict.status && !verdict.in_flight) return verdict.status;
  const auto place = state_.find(path);
  if (!place.node) return not_found(call);
  if (place.node->directory) return failed(call, Code::kDataLoss, "Is a directory");
  state_.unlink(place);
  return verdict.status;
}

Status MemoryDisk::rename(const std::string& from, const std::string& to) {
  const Call call{Operation::kRename, from, 0, 0, true};
  announce(call);
  MutexLock lock(mutex_);
  const Verdict verdict = admit(call);
  if (!verdict.status && !verdict.in_flight) return verdict.status;
  const auto source = state_.find(from);
  const auto target = state_.find(to);
  if (!source.node || !target.directory) return not_found(call);
  if (target.node && target.node->directory != source.node->directory) {
    return failed(call, Code::kDataLoss, "one is a directory, the other is not");
  }
  if (target.node && target.node->directory && !target.node->entries.empty()) {
    return failed(call, Code::kDataLoss, "Directory not empty");
  }
  if (source.node != target.node) state_.move(source, target);
  return verdict.status;
}

Status MemoryDisk::create_directory(const std::string& path) {
  const Call call{Operation::kCreateDirectory, path, 0, 0, true};
  announce(call);
  MutexLock lock(mutex_);
  const Verdict verdict = admit(call);
  if (!verdict.status && !verdict.in_flight) return verdict.status;
  for (size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const auto place = state_.find(path.substr(0, end));
    if (!place.node) {
      state_.link(place, true);
    } else if (!place.node->directory) {
      return failed(call, Code::kAlreadyExists, "File exists");
    }
  }
  return verdict.status;
}

Status MemoryDisk::remove_directory(const std::string& path) {
  const Call call{Operation::kRemoveDirectory, path, 0, 0, true};
  announce(call);
  MutexLock lock(mutex_);
  const Verdict verdict = admit(call);
  if (!verdict.status && !verdict.in_flight) return verdict.status;
  const auto place = state_.find(path);
  if (!place.node || place.name.empty()) return not_found(call);
  state_.unlink(place);
  return verdict.status;
}

Status MemoryDisk::sync_directory(const std::string& path) {
  const Call call{Operation::kSyncDirectory, path, 0, 0, true};
  announce(call);
  MutexLock lock(mutex_);
  TRY(admit(call).status);
  const auto place = state_.find(path);
  if (!place.node || !place.node->directory) return not_found(call);
  state_.sync_directory(place.node);
  return {};
}

Result<std::vector<std::string>> MemoryDisk::list(const std::string& path) {
  const Call call{Operation::kList, path, 0, 0, false};
  announce(call);
  MutexLock lock(mutex_);
  TRY(admit(call).status);
  const auto place = state_.find(path);
  if (!place.node || !place.node->directory) return not_found(call);
  std::vector<std::string> names;
  for (const auto& [name, node] : place.node->entries) names.push_back(name);
  return names;
}

Result<bool> MemoryDisk::exists(const std::string& path) {
  const Call call{Operation::kExists, path, 0, 0, false};
  announce(call);
  MutexLock lock(mutex_);
  TRY(admit(call).status);
  return state_.find(path).node != nullptr;
}

Result<std::unique_ptr<FileLock>> MemoryDisk::lock(const std::string& path) {
  const Call call{Operation::kLock, path, 0, 0, false};
  announce(call);
  MutexLock lock(mutex_);
  TRY(admit(call).status);
  const auto place = state_.find(path);
  if (!place.directory) return not_found(call);
  if (!place.node) state_.link(place, false);
  if (!locked_.insert(path).second) return failed(call, Code::kUnavailable, "held by another process");
  return std::make_unique<MemoryLock>(*this, path, epoch_);
}

Result<uint64_t> MemoryDisk::free_bytes(const std::string& path) {
  const Call call{Operation::kFreeBytes, path, 0, 0, false};
  announce(call);
  MutexLock lock(mutex_);
  TRY(admit(call).status);
  if (!state_.find(path).node) return not_found(call);
  return room();
}
