// One request of cpprestsdk's client, with what it does not tell: whether the request may have left, and a give-up that
// takes effect at once (cpprestsdk's own completes only when a name server has answered).
#pragma once

#include <cpprest/http_client.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "http/streams.h"
#include "http/transport.h"

namespace conclave::inline v1::internal {

// Thrown into cpprestsdk before it writes to a pooled connection that the member has closed: nothing was sent.
struct StaleConnection : std::runtime_error {
  StaleConnection() : std::runtime_error("the connection was closed while idle") {}
};

class HttpExchange : public Stream, public std::enable_shared_from_this<HttpExchange> {
 public:
  // `data`: null for an answer that is wanted whole.
  HttpExchange(StreamRequest request, StreamData data, HttpDone done);

  enum class Connection { kReusable, kBroken, kStale };
  // `finished` runs before `done`, and tells what became of the connection. kStale: `done` does not run; start again on
  // another one.
  void start(web::http::client::http_client& client, std::function<void(Connection)> finished);

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
  std::function<void(Connection)> finished_;
  std::shared_ptr<BodyReader> body_;
  pplx::cancellation_token_source give_up_;
  std::atomic<Phase> phase_{Phase::kWaiting};
  std::atomic<bool> over_{false};

  std::mutex mutex_;  // pieces may come before the status is known; held while `data_` runs
  int status_ = 0;
  std::string body_so_far_;
};

}  // namespace conclave::inline v1::internal
