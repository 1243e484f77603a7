// The handle of a stream that services hold. Everything of the stream itself is in its connection.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "base/thread.h"
#include "http/handler.h"
#include "http/inbox.h"

namespace http {

class IoThread;

class Stream final : public ServerStream, public std::enable_shared_from_this<Stream> {
 public:
  // `id` tells the connection's streams apart.
  Stream(IoThread& io, Connection& connection, uint64_t id, Codec codec);

  // Any thread.
  void wake() override;
  void finish(Status status) override EXCLUDES(mutex_);
  Codec codec() const override { return codec_; }

  // Io thread.
  void pump();  // after wake(): lets the connection deliver, pull and end
  bool finishing() const { return finishing_.load(std::memory_order_acquire); }
  Status outcome() EXCLUDES(mutex_);
  void detach() { connection_ = nullptr; }  // the stream is over

 private:
  IoThread* const io_;  // only to be compared, or used on its own thread
  const std::shared_ptr<Inbox> inbox_;
  Connection* connection_;  // io thread only
  const uint64_t id_;
  const Codec codec_;
  std::atomic<bool> woken_{false};
  std::atomic<bool> finishing_{false};
  Mutex mutex_;
  std::optional<Status> outcome_ GUARDED_BY(mutex_);
};

}  // namespace http
