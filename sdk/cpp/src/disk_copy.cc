#include "disk_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "random.h"

namespace conclave::inline v1::internal {

namespace {

constexpr std::uint64_t kFnvPrime = 1099511628211u;

tl::unexpected<Error> system_error(const std::string& path, int error) {
  return fail(error == ENOENT ? Code::kNotFound : Code::kUnavailable, path + ": " + std::strerror(error));
}

class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

Status save_file(const std::string& path, std::string_view text) {
  if (text.size() > kCopyBytesMax) return fail(Code::kResourceExhausted, path + ": the copy would be too large");
  const std::string fresh = path + "." + random_hex(8) + ".tmp";
  {
    const File file(fresh, O_WRONLY | O_CREAT | O_EXCL);
    if (file.fd() < 0) return system_error(fresh, errno);
    if (!write_all(file.fd(), text) || ::fsync(file.fd()) != 0) {
      const int error = errno;
      ::unlink(fresh.c_str());
      return system_error(fresh, error);
    }
  }
  if (::rename(fresh.c_str(), path.c_str()) == 0) return {};
  const int error = errno;
  ::unlink(fresh.c_str());
  return system_error(path, error);
}

Result<std::string> load_file(const std::string& path) {
  const File file(path, O_RDONLY);
  if (file.fd() < 0) return system_error(path, errno);
  struct stat info {};
  if (::fstat(file.fd(), &info) != 0) return system_error(path, errno);
  if (!S_ISREG(info.st_mode) || static_cast<std::size_t>(info.st_size) > kCopyBytesMax)
    return fail(Code::kDataLoss, path + ": not a copy of ours");
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::read(file.fd(), text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(path, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  text.resize(done);
  return text;
}

void Checksum::add_bytes(std::string_view bytes) {
  for (const char c : bytes) {
    state_ ^= static_cast<unsigned char>(c);
    state_ *= kFnvPrime;
  }
}

void Checksum::add(std::string_view field) {
  add_bytes(std::to_string(field.size()) + ":");
  add_bytes(field);
}

std::string Checksum::text() const {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(state_));
  return digits;
}

}  // namespace conclave::inline v1::internal
