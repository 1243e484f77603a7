#include "store/shared_memory.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "store/format.h"

namespace store {

namespace {

// Of the index header and of the checkpoint record behind its second copy.
constexpr size_t kFramesOffset = 16;
constexpr size_t kPagesOffset = 20;
constexpr size_t kSaltOffset = 32;  // as in the -wal: big-endian
constexpr size_t kCopiedOffset = 96;
constexpr size_t kReadMarkOffset = 100;

uint32_t load_native32(const char* from) {
  return __atomic_load_n(reinterpret_cast<const uint32_t*>(from), __ATOMIC_RELAXED);
}

uint8_t bits(int first, int count) { return static_cast<uint8_t>(((1u << count) - 1) << first); }

}  // namespace

void* SharedMemory::map(size_t region, bool extend) {
  MutexLock lock(mutex_);
  if (region >= regions_.size() && !extend) return nullptr;
  while (region >= regions_.size()) regions_.push_back(std::make_unique<char[]>(kRegionBytes));
  return regions_[region].get();
}

bool SharedMemory::conflicts(int first, int count, bool exclusive, const Held& held) const {
  for (int i = first; i < first + count; ++i) {
    if (exclusive_[i]) return true;
    const int of_others = shared_[i] - ((held.shared >> i) & 1);
    if (exclusive && of_others > 0) return true;
  }
  return false;
}

bool SharedMemory::lock(int first, int count, bool exclusive, Held& held) {
  CHECK(first >= 0 && count >= 1 && first + count <= kLocks, first, count);
  MutexLock lock(mutex_);
  const uint8_t wanted = bits(first, count);
  if (exclusive && (held.exclusive & wanted) == wanted) return true;
  if (!exclusive && (held.shared & wanted) == wanted) return true;
  CHECK((held.exclusive & wanted) == 0, first, count);
  CHECK((held.shared & wanted) == 0, first, count);
  if (conflicts(first, count, exclusive, held)) return false;
  for (int i = first; i < first + count; ++i) {
    if (exclusive) {
      exclusive_[i] = true;
    } else {
      ++shared_[i];
    }
  }
  (exclusive ? held.exclusive : held.shared) |= wanted;
  return true;
}

void SharedMemory::unlock(int first, int count, Held& held) {
  MutexLock lock(mutex_);
  for (int i = first; i < first + count; ++i) {
    if ((held.exclusive >> i) & 1) exclusive_[i] = false;
    if ((held.shared >> i) & 1) --shared_[i];
    CHECK(shared_[i] >= 0, i);
  }
  held.exclusive &= static_cast<uint8_t>(~bits(first, count));
  held.shared &= static_cast<uint8_t>(~bits(first, count));
  if (waiting_ > 0) released_.notify_all();
}

// Taking and releasing a mutex orders memory on both sides, and unlike a bare fence the thread sanitizer understands
// it.
void SharedMemory::barrier() { MutexLock lock(mutex_); }

void SharedMemory::wait_for_unlock(std::chrono::microseconds limit) {
  MutexLock lock(mutex_);
  ++waiting_;
  released_.wait_for(mutex_, limit);
  --waiting_;
}

void SharedMemory::back_off(std::chrono::microseconds time) {
  MutexLock lock(mutex_);
  never_.wait_for(mutex_, time, [] { return false; });
}

bool SharedMemory::wait_until_unread(int first, int last, const Held& except, std::chrono::milliseconds limit) {
  MutexLock lock(mutex_);
  ++waiting_;
  const bool unread = released_.wait_for(mutex_, limit, [&]() REQUIRES(mutex_) {
    for (int mark = first; mark <= last; ++mark) {
      if (conflicts(kReadLockFirst + mark, 1, true, except)) return false;
    }
    return true;
  });
  --waiting_;
  return unread;
}

SharedMemory::Index SharedMemory::index() const {
  MutexLock lock(mutex_);
  if (regions_.empty()) return {};
  const char* header = regions_[0].get();
  return {.frames = load_native32(header + kFramesOffset),
          .pages = load_native32(header + kPagesOffset),
          .salt1 = load_big32(header + kSaltOffset),
          .salt2 = load_big32(header + kSaltOffset + 4),
          .copied = load_native32(header + kCopiedOffset)};
}

uint32_t SharedMemory::read_mark(int mark) const {
  MutexLock lock(mutex_);
  CHECK(mark >= 0 && mark < kReadMarks && !regions_.empty(), mark);
  return load_native32(regions_[0].get() + kReadMarkOffset + 4 * static_cast<size_t>(mark));
}

}  // namespace store
