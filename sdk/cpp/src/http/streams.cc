#include "http/streams.h"

#include <algorithm>
#include <cstring>

namespace conclave::inline v1::internal {

std::size_t BodyReader::copy(std::uint8_t* into, std::size_t count) {
  const bool in_head = position_ < head_.size();
  const std::string& piece = in_head ? head_ : tail_;
  const std::size_t offset = in_head ? position_ : position_ - head_.size();
  const std::size_t n = std::min(count, piece.size() - offset);
  std::memcpy(into, piece.data() + offset, n);
  position_ += n;
  return n;
}

pplx::task<std::size_t> BodyReader::_getn(std::uint8_t* into, std::size_t count) {
  std::scoped_lock lock(mutex_);
  if (position_ < head_.size() || finished_ || tail_.empty()) return pplx::task_from_result(copy(into, count));
  waiting_into_ = into;
  waiting_count_ = count;
  waiting_ = {};
  return pplx::create_task(waiting_);
}

void BodyReader::finish() {
  std::unique_lock lock(mutex_);
  if (finished_) return;
  finished_ = true;
  if (waiting_into_ == nullptr) return;
  const std::size_t n = copy(waiting_into_, waiting_count_);
  waiting_into_ = nullptr;
  const auto waiting = waiting_;
  lock.unlock();
  waiting.set(n);
}

}  // namespace conclave::inline v1::internal
