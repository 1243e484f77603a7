#include "http/stream.h"

#include "http/connection.h"
#include "http/io_thread.h"

namespace http {

Stream::Stream(IoThread& io, Connection& connection, uint64_t id, Codec codec)
    : io_(&io), inbox_(io.inbox()), connection_(&connection), id_(id), codec_(codec) {}

void Stream::wake() {
  if (woken_.exchange(true, std::memory_order_acq_rel)) return;  // already on its way
  if (IoThread::current() == io_) {
    io_->woken(shared_from_this());
  } else {
    Letter letter;
    letter.stream = shared_from_this();
    inbox_->put(std::move(letter));
  }
}

void Stream::finish(Status status) {
  {
    MutexLock lock(mutex_);
    if (outcome_) return;
    outcome_ = std::move(status);
  }
  finishing_.store(true, std::memory_order_release);
  wake();
}

Status Stream::outcome() {
  MutexLock lock(mutex_);
  return *outcome_;
}

void Stream::pump() {
  woken_.store(false, std::memory_order_release);  // before the pull: what comes during it wakes again
  if (connection_ != nullptr) connection_->pump(id_);
}

}  // namespace http
