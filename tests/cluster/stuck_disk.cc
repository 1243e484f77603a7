// Preloaded into a server (LD_PRELOAD) its disk stands still while a file of the test's exists: with $STUCK_DISK as the
// beginning of their names, `.syncs` holds up what waits for the disk, `.writes` also what changes a file. A byte is
// added to `.waited` for each call that is held up. Reads go on, as they do out of the kernel's cache.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>

namespace {

struct Names {
  std::string syncs, writes, waited;
};

const Names& names() {
  static const Names all = [] {
    const char* prefix = std::getenv("STUCK_DISK");
    const std::string start = prefix != nullptr ? prefix : "";
    return start.empty() ? Names{} : Names{start + ".syncs", start + ".writes", start + ".waited"};
  }();
  return all;
}

bool exists(const std::string& path) { return !path.empty() && ::access(path.c_str(), F_OK) == 0; }

void tell(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  (void)!::write(fd, "x", 1);
  ::close(fd);
}

enum class Call { kSync, kWrite };

void stand_still(Call call) {
  const int error = errno;
  for (bool told = false; exists(names().writes) || (call == Call::kSync && exists(names().syncs));) {
    if (!std::exchange(told, true)) tell(names().waited);
    ::poll(nullptr, 0, 1);
  }
  errno = error;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int fsync(int fd) {
  static const auto real = next<int(int)>("fsync");
  stand_still(Call::kSync);
  return real(fd);
}

int fdatasync(int fd) {
  static const auto real = next<int(int)>("fdatasync");
  stand_still(Call::kSync);
  return real(fd);
}

int sync_file_range(int fd, off64_t offset, off64_t length, unsigned flags) {
  static const auto real = next<int(int, off64_t, off64_t, unsigned)>("sync_file_range");
  stand_still(Call::kSync);
  return real(fd, offset, length, flags);
}

ssize_t pwrite(int fd, const void* from, size_t size, off_t offset) {
  static const auto real = next<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  stand_still(Call::kWrite);
  return real(fd, from, size, offset);
}

int ftruncate(int fd, off_t size) noexcept {
  static const auto real = next<int(int, off_t)>("ftruncate");
  stand_still(Call::kWrite);
  return real(fd, size);
}

int posix_fallocate(int fd, off_t offset, off_t length) {
  static const auto real = next<int(int, off_t, off_t)>("posix_fallocate");
  stand_still(Call::kWrite);
  return real(fd, offset, length);
}
}
