// What a test does to the disk: faults, the power, capacity, damage; and which call may go ahead.
#include "base/memory_disk.h"

#include <algorithm>

#include "base/check.h"

using memory_disk::NodePointer;

namespace {

const char* name_of(MemoryDisk::Operation operation) {
  constexpr const char* kNames[MemoryDisk::kOperations] = {"open",
                                                           "read",
                                                           "write",
                                                           "sync",
                                                           "truncate",
                                                           "allocate",
                                                           "stat",
                                                           "remove",
                                                           "rename",
                                                           "create directory",
                                                           "remove directory",
                                                           "sync directory",
                                                           "list",
                                                           "stat",
                                                           "lock",
                                                           "free space"};
  return kNames[static_cast<size_t>(operation)];
}

}  // namespace

tl::unexpected<Error> MemoryDisk::failed(const Call& call, Code code, const char* text) {
  return fail(code, call.path + ": " + name_of(call.operation) + ": " + text);
}

void MemoryDisk::inject(Fault fault) {
  MutexLock lock(mutex_);
  CHECK(fault.nth >= 1, fault.nth);
  faults_.push_back(std::move(fault));
}

void MemoryDisk::clear_faults() {
  MutexLock lock(mutex_);
  faults_.clear();
}

void MemoryDisk::set_capacity(uint64_t bytes) {
  MutexLock lock(mutex_);
  capacity_ = bytes;
}

void MemoryDisk::set_hook(std::function<void(const Call&)> hook) {
  MutexLock lock(hook_mutex_);
  hook_ = hook ? std::make_shared<const std::function<void(const Call&)>>(std::move(hook)) : nullptr;
}

uint64_t MemoryDisk::calls() const {
  MutexLock lock(mutex_);
  uint64_t sum = 0;
  for (const uint64_t calls : calls_) sum += calls;
  return sum;
}

uint64_t MemoryDisk::calls(Operation operation) const {
  MutexLock lock(mutex_);
  return calls_[static_cast<size_t>(operation)];
}

uint64_t MemoryDisk::changes() const {
  MutexLock lock(mutex_);
  return changes_;
}

void MemoryDisk::cut_power_at(uint64_t change) {
  MutexLock lock(mutex_);
  CHECK(change >= changes_, change, changes_);
  cut_at_ = change;
}

void MemoryDisk::cut_power() {
  MutexLock lock(mutex_);
  power_cut_ = true;
}

bool MemoryDisk::power_cut() const {
  MutexLock lock(mutex_);
  return power_cut_;
}

void MemoryDisk::crash(Random& random, Loss loss) {
  MutexLock lock(mutex_);
  state_.crash(random, loss);
  faults_.clear();
  locked_.clear();
  ++epoch_;
  power_cut_ = false;
  cut_at_ = std::numeric_limits<uint64_t>::max();
}

void MemoryDisk::restart() {
  MutexLock lock(mutex_);
  locked_.clear();
  ++epoch_;
}

std::unique_ptr<MemoryDisk> MemoryDisk::clone() const {
  auto copy = std::make_unique<MemoryDisk>();
  MutexLock lock(mutex_);
  MutexLock copy_lock(copy->mutex_);
  copy->state_ = state_.clone();
  copy->capacity_ = capacity_;
  return copy;
}

Result<Bytes> MemoryDisk::content(const std::string& path) const {
  MutexLock lock(mutex_);
  const auto place = state_.find(path);
  if (!place.node || place.node->directory) return fail(Code::kNotFound, path + ": not a file");
  return place.node->now;
}

void MemoryDisk::put(const std::string& path, BytesView content) {
  MutexLock lock(mutex_);
  for (size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
    const auto parent = state_.find(path.substr(0, end));
    if (!parent.node) state_.link(parent, true);
    state_.sync_directory(parent.directory);
  }
  const auto place = state_.find(path);
  const NodePointer node = place.node ? place.node : state_.link(place, false);
  CHECK(!node->directory, path);
  state_.sync_directory(place.directory);
  node->now = node->durable = as_text(content);
  node->unsynced.clear();
}

void MemoryDisk::flip_bit(const std::string& path, uint64_t bit) {
  MutexLock lock(mutex_);
  const auto place = state_.find(path);
  CHECK(place.node && bit / 8 < place.node->now.size(), path, bit);
  for (Bytes* content : {&place.node->now, &place.node->durable}) {
    if (bit / 8 < content->size()) (*content)[bit / 8] = static_cast<char>((*content)[bit / 8] ^ (1 << (bit % 8)));
  }
}

void MemoryDisk::announce(const Call& call) {
  std::shared_ptr<const std::function<void(const Call&)>> hook;
  {
    MutexLock lock(hook_mutex_);
    hook = hook_;
  }
  if (hook) (*hook)(call);
}

MemoryDisk::Verdict MemoryDisk::admit(const Call& call) {
  constexpr const char* kPowerIsOff = "power is off";
  if (power_cut_) return {failed(call, Code::kDataLoss, kPowerIsOff)};
  ++calls_[static_cast<size_t>(call.operation)];
  if (call.change && changes_++ == cut_at_) {
    power_cut_ = true;
    return {failed(call, Code::kDataLoss, kPowerIsOff), 0, true};
  }
  for (auto fault = faults_.begin(); fault != faults_.end(); ++fault) {
    if (fault->operation != call.operation || call.path.find(fault->path) == std::string::npos) continue;
    if (fault->nth > 1) {
      --fault->nth;
      continue;
    }
    const bool lost = call.operation == Operation::kSync && fault->loses_unsynced;
    const char* text = fault->code == Code::kResourceExhausted ? kNoSpace : "Input/output error";
    Verdict verdict{failed(call, fault->code, text), fault->partial_bytes, false, lost};
    if (!fault->repeat) faults_.erase(fault);
    return verdict;
  }
  return {};
}

uint64_t MemoryDisk::room() const {
  const uint64_t used = state_.used_bytes();
  return used < capacity_ ? capacity_ - used : 0;
}
