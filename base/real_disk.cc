// The machine's file system behind base/disk.h. One system call a call, no buffer of our own: what is cached is the
// kernel's affair until sync() returns.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/disk.h"

namespace {

Code code_of(int error) {
  switch (error) {
    case ENOENT:
      return Code::kNotFound;
    case EEXIST:
      return Code::kAlreadyExists;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:   // a limit of the process, or of the file system
    case EMFILE:  // no descriptor is free: nothing was done, and it goes through later
    case ENFILE:
      return Code::kResourceExhausted;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::kPermissionDenied;
    default:
      return Code::kDataLoss;
  }
}

tl::unexpected<Error> failed(const char* what, const std::string& path, int error = errno) {
  return fail(code_of(error), path + ": " + what + ": " + std::generic_category().message(error));
}

// Owns a descriptor; closes it. What close() answers is of no use: everything that matters was synced before.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// A signal may interrupt before anything was done; then the call is made again.
template <class Call>
auto uninterrupted(const Call& call) {
  decltype(call()) answer;
  do {
    answer = call();
  } while (answer < 0 && errno == EINTR);
  return answer;
}

int open_descriptor(const std::string& path, int flags) {
  return uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0600); });
}

class RealFile : public File {
 public:
  RealFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  Result<size_t> read(uint64_t offset, std::span<std::byte> into) override {
    size_t done = 0;
    while (done < into.size()) {
      const ssize_t got = uninterrupted([&] {
        return ::pread(fd_.get(), into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
      });
      if (got < 0) return failed("read", path_);
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }

  Status write(uint64_t offset, BytesView from) override {
    size_t done = 0;
    while (done < from.size()) {
      const ssize_t put = uninterrupted([&] {
        return ::pwrite(fd_.get(), from.data() + done, from.size() - done, static_cast<off_t>(offset + done));
      });
      if (put < 0) return failed("write", path_);
      if (put == 0) return failed("write", path_, EIO);
      done += static_cast<size_t>(put);
    }
    return {};
  }

  // Once only, also when interrupted: after a failed sync the kernel may have dropped the dirty pages and marked them
  // clean, so that a second call would answer success for data that is gone.
  Status sync() override {
    if (::fdatasync(fd_.get()) < 0) return failed("sync", path_);
    return {};
  }

  // Without waiting the kernel reports no error here, and none is lost: the next sync() tells it.
  Status write_out(uint64_t offset, uint64_t length, bool wait) override {
    const unsigned flags =
        SYNC_FILE_RANGE_WRITE | (wait ? SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WAIT_AFTER : 0);
    const int done = ::sync_file_range(fd_.get(), static_cast<off64_t>(offset), static_cast<off64_t>(length), flags);
    // Some file systems have no such call; then sync() does it all.
    if (done < 0 && errno != ENOSYS && errno != EINVAL && errno != ESPIPE && errno != EINTR) {
      return failed("write out", path_);
    }
    return {};
  }

  Status truncate(uint64_t size) override {
    if (uninterrupted([&] { return ::ftruncate(fd_.get(), static_cast<off_t>(size)); }) < 0) {
      return failed("truncate", path_);
    }
    return {};
  }

  // posix_fallocate and not fallocate: it writes zeros itself where the file system cannot reserve.
  Status allocate(uint64_t size) override {
    if (size == 0) return {};
    int error;
    do {
      error = ::posix_fallocate(fd_.get(), 0, static_cast<off_t>(size));
    } while (error == EINTR);
    if (error != 0) return failed("allocate", path_, error);
    return {};
  }

  Result<uint64_t> size() override {
    struct stat status {};
    if (::fstat(fd_.get(), &status) < 0) return failed("stat", path_);
    return static_cast<uint64_t>(status.st_size);
  }

 private:
  const std::string path_;
  const Descriptor fd_;
};

// flock() belongs to the open file, not to the process: a second lock of this process is refused as well, and the lock
// ends with the process whatever kills it.
class RealLock : public FileLock {
 public:
  explicit RealLock(int fd) : fd_(fd) {}

 private:
  const Descriptor fd_;
};

class RealDisk : public Disk {
 public:
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    int flags = O_RDONLY;
    if (mode == OpenMode::kReadWrite) flags = O_RDWR;
    if (mode == OpenMode::kCreate) flags = O_RDWR | O_CREAT;
    if (mode == OpenMode::kCreateNew) flags = O_RDWR | O_CREAT | O_EXCL;
    const int fd = open_descriptor(path, flags);
    if (fd < 0) return failed("open", path);
    return std::make_unique<RealFile>(path, fd);
  }

  Status remove(const std::string& path) override {
    if (::unlink(path.c_str()) < 0) return failed("remove", path);
    return {};
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) < 0) return failed(("rename to " + to).c_str(), from);
    return {};
  }

  Status create_directory(const std::string& path) override {
    for (size_t end = 0; end != std::string::npos;) {
      end = path.find('/', end + 1);
      const std::string part = path.substr(0, end);
      if (::mkdir(part.c_str(), 0700) < 0) {
        const int error = errno;
        struct stat status {};
        if (::stat(part.c_str(), &status) < 0 || !S_ISDIR(status.st_mode)) {
          return failed("create directory", part, error);
        }
      }
    }
    return {};
  }

  Status remove_directory(const std::string& path) override {
    std::error_code error;
    const auto removed = std::filesystem::remove_all(path, error);
    if (error) return failed("remove directory", path, error.value());
    if (removed == 0) return failed("remove directory", path, ENOENT);
    return {};
  }

  Status sync_directory(const std::string& path) override {
    const Descriptor fd(open_descriptor(path, O_RDONLY | O_DIRECTORY));
    if (fd.get() < 0) return failed("open directory", path);
    // As a file's sync(): not to be tried again, so it must not look like the open above without a descriptor.
    if (::fsync(fd.get()) < 0) return failed("sync directory", path, errno == ENOSPC || errno == EDQUOT ? EIO : errno);
    return {};
  }

  Result<std::vector<std::string>> list(const std::string& path) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), &::closedir);
    if (!directory) return failed("list", path);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(directory.get())) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
      errno = 0;
    }
    if (errno != 0) return failed("list", path);
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<bool> exists(const std::string& path) override {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return failed("stat", path);
  }

  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    const int fd = open_descriptor(path, O_RDWR | O_CREAT);
    if (fd < 0) return failed("open", path);
    auto lock = std::make_unique<RealLock>(fd);
    if (uninterrupted([&] { return ::flock(fd, LOCK_EX | LOCK_NB); }) < 0) {
      if (errno == EWOULDBLOCK) return fail(Code::kUnavailable, path + ": lock: held by another process");
      return failed("lock", path);
    }
    return lock;
  }

  Result<uint64_t> free_bytes(const std::string& path) override {
    struct statvfs status {};
    if (::statvfs(path.c_str(), &status) < 0) return failed("free space", path);
    return static_cast<uint64_t>(status.f_bavail) * status.f_frsize;
  }
};

}  // namespace

Disk& real_disk() {
  static RealDisk disk;
  return disk;
}
