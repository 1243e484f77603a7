#include "base/thread.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <thread>

namespace {

// runtime of the kernel's struct sched_attr: the slice in nanoseconds, 0 where the kernel has none for such threads.
uint64_t slice_of_this_thread() {
  std::array<uint64_t, 7> attributes{};
  if (syscall(SYS_sched_getattr, 0, attributes.data(), sizeof attributes, 0) != 0) return 0;
  return attributes[3];
}

bool kernel_has_slices() {
  int major = 0;
  int minor = 0;
  FILE* file = std::fopen("/proc/sys/kernel/osrelease", "re");
  if (file == nullptr) return false;
  const bool read = std::fscanf(file, "%d.%d", &major, &minor) == 2;
  std::fclose(file);
  return read && (major > 6 || (major == 6 && minor >= 12));
}

TEST(Thread, OneInAHurryHasAShortSlice) {
  if (!kernel_has_slices()) GTEST_SKIP() << "Linux before 6.12 gives all threads the same slice";
  uint64_t before = 0;
  uint64_t after = 0;
  std::thread([&] {
    before = slice_of_this_thread();
    hurry_thread();
    after = slice_of_this_thread();
  }).join();
  if (before == 0) GTEST_SKIP() << "slices are not told here";
  EXPECT_EQ(after, 100'000U);
}

TEST(Thread, HurryGoesWithoutThePrivilegeToo) {
  if (!kernel_has_slices()) GTEST_SKIP() << "Linux before 6.12 gives all threads the same slice";
  uint64_t before = 0;
  uint64_t after = 0;
  int niceness = 0;
  std::thread([&] {
    before = slice_of_this_thread();
    // Of this thread alone: the system call, not glibc's setresuid, which asks all threads.
    if (geteuid() == 0 && syscall(SYS_setresuid, -1, 65534, -1) != 0) return;
    (void)setpriority(PRIO_PROCESS, 0, 5);
    hurry_thread();
    after = slice_of_this_thread();
    niceness = getpriority(PRIO_PROCESS, 0);
  }).join();
  if (before == 0) GTEST_SKIP() << "slices are not told here";
  EXPECT_EQ(after, 100'000U);
  EXPECT_EQ(niceness, 5);
}

}  // namespace
