// One request of cpprestsdk's client, with what it does not tell: whether the request may have left, and a give-up that
// takes effect at once (cpprestsdk's own completes only when a name server has answered).
#pragma once

#include <cpprest/http_client.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "http/streams.h"
#include "http/transport.h"

namespace conclave::inline v1::internal {

class HttpExchange : public Stream, public std::enable_shared_from_this<HttpExchange> {
 public:
  // `data`: null for an answer that is wanted whole.
  HttpExchange(StreamRequest request, StreamData data, HttpDone done);

  // `finished` runs before `done`, and tells whether the connection can be used again.
  void start(web::http::client::http_client& client, std::function<void(bool reusable)> finished);

  bool cancel() override;
  bool cancel_unsent() override;
  bool sent() const override { return phase_ == Phase::kSent; }
  void finish() override { body_->finish(); }

 private:
  enum class Phase { kWaiting, kSent, kAbandoned };

  void leaving();  // throws if abandoned: cpprestsdk then drops the request before its body is written
  void on_piece(std::string_view piece);
  void on_headers(int status);
  void on_end(int status, std::string failure);

  const std::string path_;
  StreamData data_;
  HttpDone done_;
  std::function<void(bool)> finished_;
  std::shared_ptr<BodyReader> body_;
  pplx::cancellation_token_source give_up_;
  std::atomic<Phase> phase_{Phase::kWaiting};
  std::atomic<bool> over_{false};

  std::mutex mutex_;  // pieces may come before the status is known; held while `data_` runs
  int status_ = 0;
  std::string body_so_far_;
};

}  // namespace conclave::inline v1::internal
