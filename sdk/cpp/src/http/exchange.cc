#include "http/exchange.h"

#include <exception>
#include <stdexcept>
#include <utility>

namespace conclave::inline v1::internal {

namespace {
constexpr int kOk = 200;
}

HttpExchange::HttpExchange(StreamRequest request, StreamData data, HttpDone done)
    : path_(std::move(request.path)),
      data_(std::move(data)),
      done_(std::move(done)),
      body_(std::make_shared<BodyReader>(std::move(request.head), std::move(request.tail))) {}

void HttpExchange::start(web::http::client::http_client& client, std::function<void(Connection)> finished) {
  finished_ = std::move(finished);
  const auto self = shared_from_this();
  web::http::http_request request(web::http::methods::POST);
  request.set_request_uri(path_);
  request.set_body(concurrency::streams::streambuf<std::uint8_t>(body_).create_istream(), body_->bytes(),
                   "application/json");
  const auto writer = std::make_shared<ReplyWriter>([self](std::string_view piece) { self->on_piece(piece); });
  request.set_response_stream(concurrency::streams::streambuf<std::uint8_t>(writer).create_ostream());
  request.set_progress_handler([self](web::http::message_direction::direction direction, utility::size64_t) {
    if (direction == web::http::message_direction::upload) self->leaving();
  });
  try {
    client.request(request, give_up_.get_token())
        .then([self](web::http::http_response response) {
          self->on_headers(response.status_code());
          return response.content_ready();
        })
        .then([self](pplx::task<web::http::http_response> whole) {
          try {
            self->on_end(whole.get().status_code(), {});
          } catch (const StaleConnection&) {
            const auto stale = std::move(self->finished_);
            self->finished_ = nullptr;
            stale(Connection::kStale);
          } catch (const std::exception& e) {
            self->on_end(0, *e.what() != '\0' ? e.what() : "connection failed");
          }
        });
  } catch (const std::exception& e) {
    on_end(0, e.what());
  }
}

bool HttpExchange::cancel() {
  if (over_.exchange(true)) return false;
  Phase waiting = Phase::kWaiting;
  phase_.compare_exchange_strong(waiting, Phase::kAbandoned);
  give_up_.cancel();
  body_->finish();  // cpprestsdk may be waiting for the rest of the body
  return true;
}

bool HttpExchange::cancel_unsent() {
  Phase waiting = Phase::kWaiting;
  if (!phase_.compare_exchange_strong(waiting, Phase::kAbandoned)) return false;
  return cancel();
}

void HttpExchange::leaving() {
  Phase waiting = Phase::kWaiting;
  if (phase_.compare_exchange_strong(waiting, Phase::kSent)) return;
  if (waiting == Phase::kAbandoned) throw std::runtime_error("given up");
}

void HttpExchange::on_piece(std::string_view piece) {
  std::scoped_lock lock(mutex_);
  if (over_) return;
  if (data_ && status_ == kOk) {
    data_(piece);
  } else {
    body_so_far_ += piece;
  }
}

void HttpExchange::on_headers(int status) {
  std::scoped_lock lock(mutex_);
  status_ = status;
  if (!data_ || status != kOk || body_so_far_.empty() || over_) return;
  data_(body_so_far_);
  body_so_far_.clear();
}

void HttpExchange::on_end(int status, std::string failure) {
  if (finished_) finished_(failure.empty() && !over_ ? Connection::kReusable : Connection::kBroken);
  finished_ = nullptr;
  if (over_.exchange(true)) return;
  HttpReply reply{.status = status, .sent = sent(), .failure = std::move(failure)};
  {
    std::scoped_lock lock(mutex_);
    if (status == 0) reply.status = status_;
    reply.body = std::move(body_so_far_);
  }
  const HttpDone done = std::move(done_);
  done(std::move(reply));
}

}  // namespace conclave::inline v1::internal
