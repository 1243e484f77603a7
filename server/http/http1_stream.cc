#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <charconv>

#include "base/check.h"
#include "http/http1_connection.h"
#include "http/json_write.h"
#include "http/stream.h"

namespace http {
namespace {

constexpr std::string_view kJsonType = "application/json";
constexpr std::string_view kCallHeader = "Grpc-Metadata-Content-Type: application/grpc\r\n";
constexpr size_t kSharedBytesMin = 16 * 1024;  // below this a copy is cheaper than a reference

}  // namespace

class Http1Connection::StreamSink final : public Sink {
 public:
  explicit StreamSink(Http1Connection& connection) : connection_(connection) {}

  bool full() const override { return connection_.output_full(); }
  void send(const Message& response) override {
    std::string& bytes = connection_.io_.scratch();
    bytes.clear();
    json::append_result(bytes, response);
    connection_.send_on_stream(bytes, nullptr);
  }
  void send(const std::shared_ptr<const Encoded>& response) override {
    CHECK(response->codec == Codec::kJson, "encoded for another wire");
    connection_.send_on_stream(response->bytes, &response);
  }

 private:
  Http1Connection& connection_;
};

void Http1Connection::open_stream() {
  if (io_.shared().streams_open.fetch_add(1) >= io_.limits().streams_max) {
    io_.shared().streams_open.fetch_sub(1);
    phase_ = Phase::kStream;
    stream_headed_ = false;
    return end_stream(fail(Code::kResourceExhausted, "etcdserver: too many requests"));
  }
  phase_ = Phase::kStream;
  deadline_ = IoThread::Clock::time_point::max();
  scanner_.reset();
  stream_in_.clear();
  stream_headed_ = half_closed_ = skip_body_ = framing_lost_ = held_back_ = pull_again_ = false;
  stream_ = std::make_shared<Stream>(io_, *this, 0, Codec::kJson);
  // A watcher that does not read costs what is in Output and this; the kernel would buffer megabytes.
  if (tcp_) {
    const int lowat = kStreamUnsentBytesMax;
    (void)::setsockopt(native_socket(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof(lowat));
  }
  auto opened = endpoint_->stream->open({stream_, call_info()});
  if (!opened) return end_stream(fail(opened.error()));
  handler_ = std::move(*opened);
  CHECK(handler_ != nullptr, "a stream that was accepted has a handler");
  set_call_deadline();
  if (endpoint_->stream->single_request) {
    handler_->on_message(std::move(request_));
    half_close();
  }
  stream_->wake();
}

// What belongs to the body goes to stream_in_; pump() makes messages of it.
void Http1Connection::read_stream(std::string_view& in) {
  if (body_reader_.done() || framing_lost_) return;
  const auto result = body_reader_.read(in, skip_body_ ? nullptr : &stream_in_, io_.limits().body_bytes_max() + 1);
  if (result == BodyReader::Result::kBad) framing_lost_ = true;  // as if the body ended here
  if (!account()) {
    io_.shared().requests_refused.fetch_add(1, std::memory_order_relaxed);
    skip_body_ = true;
    shrink(stream_in_);
    return stream_->finish(fail(Code::kResourceExhausted, "etcdserver: too many requests"));
  }
  stream_->wake();
}

// Messages are handed over one by one, as fast as the handler and the output take them.
void Http1Connection::deliver() {
  held_back_ = false;
  size_t done = 0;
  while (!half_closed_ && !stream_->finishing()) {
    if (output_full() || !handler_->may_receive()) {
      held_back_ = true;
      break;
    }
    const std::string_view text = std::string_view(stream_in_).substr(done);
    const auto found = scanner_.scan(text);
    if (scanner_.end() > io_.limits().body_bytes_max()) {
      skip_body_ = true;
      stream_->finish(fail(too_large(scanner_.end())));
      break;
    }
    if (found == json::Scanner::Found::kMore) {
      if (body_reader_.done() || framing_lost_) half_close();  // also in the middle of a message, as etcd does
      break;
    }
    MessagePtr message(endpoint_->stream->request->New());
    if (found == json::Scanner::Found::kNotObject ||
        !json::parse(text.substr(scanner_.begin(), scanner_.size()), *message)) {
      // To etcd's gateway a body that cannot be read has simply ended there.
      skip_body_ = true;
      half_close();
      break;
    }
    if (scanner_.size() > io_.limits().message_bytes_max()) {
      if (const size_t size = message->ByteSizeLong(); size > io_.limits().message_bytes_max()) {
        skip_body_ = true;
        stream_->finish(fail(too_large(size)));
        break;
      }
    }
    done += scanner_.end();
    scanner_.reset();
    handler_->on_message(std::move(message));
    StreamSink sink(*this);
    if (!output_full()) handler_->pull(sink);
  }
  stream_in_.erase(0, done);
  if (skip_body_) stream_in_.clear();
  if (stream_in_.empty() && stream_in_.capacity() > kIdleBufferBytes) std::string().swap(stream_in_);
}

void Http1Connection::half_close() {
  half_closed_ = true;
  handler_->on_half_close();
}

void Http1Connection::pump(uint64_t) {
  if (phase_ != Phase::kStream || handler_ == nullptr) return;
  deliver();
  StreamSink sink(*this);
  if (!output_full()) handler_->pull(sink);
  pull_again_ = output_full();
  if (stream_->finishing() && !pull_again_) end_stream(stream_->outcome());
  unsettle();
}

void Http1Connection::stream_head(int status, std::string_view type, std::string_view more) {
  stream_headed_ = true;
  HeadOptions options;
  options.status = status;
  options.content_type = type;
  options.more = more;
  options.http_1_1 = http_1_1_;
  options.chunked = http_1_1_;
  if (!http_1_1_) keep_alive_ = false;  // the end of the answer is the end of the connection
  options.keep_alive = keep_alive_;
  io_.responses().head(out_.tail(), options);
}

// One chunk a message: there are clients that parse chunk by chunk.
void Http1Connection::send_on_stream(std::string_view bytes, const std::shared_ptr<const Encoded>* shared) {
  if (!stream_headed_) stream_head(200, kJsonType, kCallHeader);
  add_chunk(bytes, shared);
}

void Http1Connection::add_chunk(std::string_view bytes, const std::shared_ptr<const Encoded>* shared) {
  if (bytes.empty()) return;  // would be the end of the body
  if (http_1_1_) {
    char size[16];
    char* end = std::to_chars(size, size + sizeof(size), bytes.size(), 16).ptr;
    out_.tail().append(size, static_cast<size_t>(end - size)).append("\r\n");
  }
  if (shared != nullptr && bytes.size() >= kSharedBytesMin) {
    out_.add(*shared);
  } else {
    out_.tail().append(bytes);
  }
  if (http_1_1_) out_.tail().append("\r\n");
}

// Takes the stream apart; the caller tells the handler, if it must be told.
std::unique_ptr<StreamHandler> Http1Connection::close_stream() {
  if (stream_ == nullptr) return nullptr;
  stream_->detach();
  stream_.reset();
  io_.shared().streams_open.fetch_sub(1);
  std::string().swap(stream_in_);
  held_back_ = pull_again_ = false;
  return std::move(handler_);
}

void Http1Connection::end_stream(const Status& outcome) {
  close_stream();
  if (!outcome) {
    std::string bytes = "{\"error\":";
    json::append_error(bytes, outcome.error());
    bytes += "}\n";
    if (!stream_headed_) stream_head(http_status(outcome.error().code), kJsonType, error_headers(outcome.error()));
    send_on_stream(bytes, nullptr);
  } else if (!stream_headed_) {
    stream_head(200, {}, {});  // nothing was ever sent: etcd does not even name a type
  }
  if (http_1_1_) out_.tail().append("0\r\n\r\n");
  finish_request();
}

}  // namespace http
