// The machine's own clock, randomness and disk. The only place of the server that asks the system for the time or for
// random bits.
#include <sys/random.h>
#include <time.h>

#include <array>

#include "base/check.h"
#include "base/world.h"

namespace {

std::chrono::nanoseconds read_clock(clockid_t id) {
  timespec now{};
  CHECK(clock_gettime(id, &now) == 0, "clock", id);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

class SystemClock : public Clock {
 public:
  // CLOCK_BOOTTIME and not CLOCK_MONOTONIC: a lease goes on while the machine sleeps.
  std::chrono::nanoseconds monotonic() override { return read_clock(CLOCK_BOOTTIME); }
  std::chrono::nanoseconds wall() override { return read_clock(CLOCK_REALTIME); }
};

// The kernel's generator, drawn in blocks per thread: no lock, one system call for kWordsPerDraw numbers, and nothing
// that could be guessed from numbers seen before (ids and tokens come from here). Never fork and go on: both would draw
// the same.
class SystemRandom : public Random {
 public:
  uint64_t next() override {
    thread_local Block block;
    if (block.used == block.words.size()) refill(block);
    return block.words[block.used++];
  }

 private:
  static constexpr size_t kWordsPerDraw = 32;  // 256 bytes: getrandom never returns fewer than asked up to that size
  struct Block {
    std::array<uint64_t, kWordsPerDraw> words{};
    size_t used = kWordsPerDraw;
  };
  static void refill(Block& block) {
    const ssize_t got = getrandom(block.words.data(), sizeof(block.words), 0);
    CHECK(got == static_cast<ssize_t>(sizeof(block.words)), "getrandom", got);
    block.used = 0;
  }
};

}  // namespace

World& real_world() {
  static SystemClock clock;
  static SystemRandom random;
  static World world{clock, random, real_disk()};
  return world;
}
