#include "http/output.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "http/limits.h"

namespace http {
namespace {
constexpr size_t kPiecesAtOnce = 64;  // of one sendmsg
}

std::string& Output::tail() {
  if (pieces_.empty() || pieces_.back().shared || pieces_.back().own.size() >= kOutputPieceBytes) {
    if (!pieces_.empty()) closed_size_ += pieces_.back().view().size();
    pieces_.emplace_back();
  }
  return pieces_.back().own;
}

void Output::add(std::string bytes) {
  if (!pieces_.empty()) closed_size_ += pieces_.back().view().size();
  pieces_.push_back({std::move(bytes), nullptr});
}

void Output::add(std::shared_ptr<const Encoded> encoded) {
  if (!pieces_.empty()) closed_size_ += pieces_.back().view().size();
  pieces_.push_back({{}, std::move(encoded)});
}

size_t Output::size() const {
  if (pieces_.empty()) return 0;
  return closed_size_ + pieces_.back().view().size() - offset_;
}

Output::Written Output::write_to(int socket, size_t bytes_max, uint64_t& sent) {
  while (!empty()) {
    if (bytes_max == 0) return Written::kMore;
    iovec vectors[kPiecesAtOnce];
    size_t count = 0;
    size_t total = 0;
    for (size_t i = first_; i < pieces_.size() && count < kPiecesAtOnce && total < bytes_max; ++i) {
      std::string_view bytes = pieces_[i].view();
      if (i == first_) bytes.remove_prefix(offset_);
      bytes = bytes.substr(0, bytes_max - total);
      if (!bytes.empty()) vectors[count++] = {const_cast<char*>(bytes.data()), bytes.size()};
      total += bytes.size();
    }
    msghdr message{};
    message.msg_iov = vectors;
    message.msg_iovlen = count;
    const ssize_t written = count == 1
                                ? ::send(socket, vectors[0].iov_base, vectors[0].iov_len, MSG_NOSIGNAL | MSG_DONTWAIT)
                                : ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK ? Written::kBlocked : Written::kFailed;
    }
    sent += static_cast<uint64_t>(written);
    bytes_max -= static_cast<size_t>(written);
    drop(static_cast<size_t>(written));
  }
  return Written::kAll;
}

void Output::drop(size_t bytes) {
  while (bytes > 0) {
    const size_t size = pieces_[first_].view().size();
    const size_t here = std::min(bytes, size - offset_);
    bytes -= here;
    offset_ += here;
    if (offset_ < size || first_ + 1 == pieces_.size()) break;
    closed_size_ -= size;
    offset_ = 0;
    pieces_[first_++] = Piece();
  }
  if (first_ >= kPiecesAtOnce) {
    pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<ptrdiff_t>(first_));
    first_ = 0;
  }
  if (!empty()) return;
  // An idle connection keeps one small string to write its next answer into.
  Piece last = std::move(pieces_.back());
  clear();
  if (!last.shared && last.own.capacity() <= kIdleBufferBytes) {
    last.own.clear();
    pieces_.push_back(std::move(last));
  }
}

void Output::clear() {
  if (pieces_.capacity() > 8) std::vector<Piece>().swap(pieces_);
  pieces_.clear();
  first_ = offset_ = closed_size_ = 0;
}

}  // namespace http
