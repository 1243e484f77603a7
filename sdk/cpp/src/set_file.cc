#include "set_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

#include "json.h"

namespace conclave::inline v1::internal {
namespace {

std::string system_text(const std::string& path, const char* what) {
  return path + ": " + what + ": " + std::strerror(errno);
}

// FNV-1a over everything that counts; against a file that was cut or edited by accident.
std::string checksum(const std::string& text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(hash));
  return hex;
}

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

Status write_whole(const std::string& path, const std::string& text) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (file.get() < 0) return fail(Code::kUnavailable, system_text(path, "open"));
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(file.get(), text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(Code::kUnavailable, system_text(path, "write"));
    done += static_cast<std::size_t>(written);
  }
  if (::fsync(file.get()) != 0) return fail(Code::kUnavailable, system_text(path, "sync"));
  return {};
}

Result<std::string> read_whole(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return fail(errno == ENOENT ? Code::kNotFound : Code::kUnavailable, system_text(path, "open"));
  std::string text;
  char piece[65536];
  while (true) {
    const ssize_t size = ::read(file.get(), piece, sizeof piece);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail(Code::kUnavailable, system_text(path, "read"));
    if (size == 0) return text;
    text.append(piece, static_cast<std::size_t>(size));
    if (text.size() > kSetFileBytesMax) return fail(Code::kDataLoss, path + ": larger than any copy of ours");
  }
}

}  // namespace

Status write_set_file(const std::string& path, const std::string& prefix, const PrefixView::State& state) {
  Json values = Json::object();
  for (const auto& [name, value] : state.values) values.set(base64_encode(name), base64_encode(value));
  const std::string set = Json::object()
                              .set("prefix", base64_encode(prefix))
                              .set("revision", number(state.revision))
                              .set("values", std::move(values))
                              .dump();
  const std::string text = Json::object().set("v", 1).set("checksum", checksum(set)).set("set", set).dump() + "\n";
  const std::string fresh = path + ".new";
  if (auto written = write_whole(fresh, text); !written) return written;
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return fail(Code::kUnavailable, system_text(path, "replace"));
  return {};
}

Result<PrefixView::State> read_set_file(const std::string& path, const std::string& prefix) {
  auto text = read_whole(path);
  if (!text) return fail(std::move(text.error()));
  const auto file = Json::parse(*text);
  const Error damaged{.code = Code::kDataLoss, .message = path + ": not a whole copy of a configuration"};
  if (!file || (*file)["v"].integer() != 1) return fail(damaged);
  const std::string& set_text = (*file)["set"].text();
  if ((*file)["checksum"].text() != checksum(set_text)) return fail(damaged);
  const auto set = Json::parse(set_text);
  if (!set) return fail(damaged);
  if ((*set)["prefix"].text() != base64_encode(prefix)) {
    return fail(Code::kInvalidArgument, path + ": holds the configuration of another prefix");
  }
  PrefixView::State state;
  state.revision = Revision{(*set)["revision"].integer()};
  for (const auto& [name, value] : (*set)["values"].members()) {
    auto plain_name = base64_decode(name);
    auto plain_value = base64_decode(value.text());
    if (!plain_name || !plain_value) return fail(damaged);
    state.values.emplace(std::move(*plain_name), std::move(*plain_value));
  }
  return state;
}

}  // namespace conclave::inline v1::internal
