#include "cache_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "random.h"

namespace conclave::inline v1::internal {

namespace {

constexpr int kVersion = 1;

tl::unexpected<Error> system_error(const std::string& path, int error) {
  return fail(error == ENOENT ? Code::kNotFound : Code::kUnavailable, path + ": " + std::strerror(error));
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

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

// Under a name of its own until it is whole and synced, so that programs that share a path do not meet in it.
Status replace(const std::string& path, std::string_view text) {
  const std::string fresh = path + "." + random_hex(8) + ".tmp";
  {
    const Descriptor file(fresh, O_WRONLY | O_CREAT | O_EXCL);
    if (file.get() < 0) return system_error(fresh, errno);
    if (!write_all(file.get(), text) || ::fsync(file.get()) != 0) {
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

Result<std::string> read_whole(const std::string& path) {
  const Descriptor file(path, O_RDONLY | O_NONBLOCK);  // a pipe by that name must not hold up the start
  if (file.get() < 0) return system_error(path, errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return system_error(path, errno);
  if (!S_ISREG(info.st_mode) || static_cast<std::size_t>(info.st_size) > kCacheFileBytesMax)
    return fail(Code::kDataLoss, path + ": not a copy of ours");
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(path, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  text.resize(done);
  return text;
}

// FNV-1a: finds what was cut, or edited by accident; not malice.
std::string checksum(std::string_view kind, std::string_view content) {
  std::uint64_t hash = 14695981039346656037u;
  const auto add = [&hash](std::string_view bytes) {
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  };
  add(kind);
  add("\n");
  add(content);
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

}  // namespace

// The content travels as text inside: its checksum is then of bytes, whatever the order of an object's members.
Status write_cache_file(const std::string& path, std::string_view kind, const Json& content) {
  const std::string inner = content.dump();
  const std::string text = Json::object()
                               .set("v", kVersion)
                               .set("kind", kind)
                               .set("checksum", checksum(kind, inner))
                               .set("content", inner)
                               .dump() +
                           "\n";
  if (text.size() > kCacheFileBytesMax) return fail(Code::kResourceExhausted, path + ": the copy would be too large");
  return replace(path, text);
}

Result<Json> read_cache_file(const std::string& path, std::string_view kind) {
  const auto text = read_whole(path);
  if (!text) return fail(text.error());
  const auto damaged = [&](const std::string& why) { return fail(Code::kDataLoss, path + ": damaged: " + why); };
  const auto file = Json::parse(*text);
  if (!file) return damaged(file.error().message);
  if ((*file)["v"].integer() != kVersion || (*file)["kind"].text() != kind)
    return fail(Code::kDataLoss, path + ": not a copy of kind " + std::string(kind));
  const std::string& inner = (*file)["content"].text();
  if ((*file)["checksum"].text() != checksum(kind, inner)) return damaged("the checksum differs");
  auto content = Json::parse(inner);
  if (!content) return damaged(content.error().message);
  return content;
}

}  // namespace conclave::inline v1::internal
