#include "http/grpc_call.h"

#include "base/check.h"
#include "http/grpc_wire.h"
#include "http/http2_headers.h"
#include "http/stream.h"

namespace http {
namespace {

constexpr std::string_view kGrpcType = "application/grpc";
constexpr const char* kTooMany = "etcdserver: too many requests";
constexpr const char* kStopped = "etcdserver: server stopped";

}  // namespace

class GrpcCall::CallSink final : public Sink {
 public:
  explicit CallSink(GrpcCall& call) : call_(call) {}
  bool full() const override { return call_.output_full(); }
  void send(const Message& response) override {
    std::string bytes;
    grpc::append(bytes, response);
    call_.send(std::move(bytes));
  }
  void send(const std::shared_ptr<const Encoded>& response) override {
    CHECK(response->codec == Codec::kGrpc, "encoded for another wire");
    call_.send(response);
  }

 private:
  GrpcCall& call_;
};

GrpcCall::GrpcCall(Http2Connection& connection, int32_t id)
    : connection_(&connection), owner_(connection.self()), io_(&connection.io()), id_(id) {}

GrpcCall::~GrpcCall() { CHECK(handler_ == nullptr); }

// --- Answers from wherever they come

Letter GrpcCall::letter() {
  Letter letter;
  letter.connection = owner_;
  letter.call = static_cast<uint64_t>(id_);
  return letter;
}

void GrpcCall::answer(uint64_t, Answer answer) {
  Letter letter = this->letter();
  letter.content = std::move(answer);
  if (IoThread::current() == io_) return take(letter);
  owner_->post(std::move(letter));
}

void GrpcCall::answer_now(uint64_t, const Message& response) {
  std::string bytes;
  grpc::append(bytes, response);
  Letter letter = this->letter();
  letter.content = std::move(bytes);
  if (IoThread::current() == io_) return take(letter);
  owner_->post(std::move(letter));
}

void GrpcCall::answer_part(uint64_t, std::shared_ptr<const Encoded> part, bool last) {
  Letter letter = this->letter();
  letter.content = Part{std::move(part), last};
  if (IoThread::current() == io_) return take(letter);
  owner_->post(std::move(letter));
}

void GrpcCall::take(Letter& letter) {
  if (over()) return;
  if (auto* answer = std::get_if<Answer>(&letter.content)) {
    if (!*answer) return end(fail(answer->error()));
    CHECK(**answer != nullptr, "a good answer has a message");
    std::string bytes;
    grpc::append(bytes, ***answer);
    send(std::move(bytes));
    end({});
  } else if (auto* encoded = std::get_if<std::string>(&letter.content)) {
    send(std::move(*encoded));
    end({});
  } else if (auto* part = std::get_if<Part>(&letter.content)) {
    CHECK(part->encoded->codec == Codec::kGrpc, "encoded for another wire");
    send(std::move(part->encoded));
    if (part->last) end({});
  }
}

// --- The head of the request

bool GrpcCall::add_header(std::string_view name, std::string_view value) {
  constexpr size_t kOverhead = 32;  // of each, as RFC 9113 counts
  head_bytes_ += name.size() + value.size() + kOverhead;
  if (head_bytes_ > kHeadBytesMax) return false;
  if (name == ":path") {
    path_ = value;
  } else if (name == ":method") {
    post_ = value == "POST";
  } else if (name == "content-type") {
    grpc_ = value.starts_with(kGrpcType) &&
            (value.size() == kGrpcType.size() || value[kGrpcType.size()] == '+' || value[kGrpcType.size()] == ';');
  } else if (name == "grpc-timeout") {
    timeout_ = value;
  } else if (name == "grpc-encoding") {
    gzip_ = value == "gzip";
    if (!gzip_ && value != "identity") foreign_encoding_ = value;
  } else if (name == "token" || (name == "authorization" && token_.empty())) {
    if (value.starts_with("Bearer ")) value.remove_prefix(7);
    token_ = value;
  }
  return true;
}

void GrpcCall::on_headers() {
  io_->shared().requests.fetch_add(1, std::memory_order_relaxed);
  if (!post_) return refuse(405);
  if (!grpc_) return refuse(415);
  if (timeout_) {
    const auto timeout = grpc::parse_timeout(*timeout_);
    if (!timeout) return end(fail(Code::kInternal, "malformed grpc-timeout: " + *timeout_));
    deadline_ = IoThread::Clock::now() + *timeout;
  }
  endpoint_ = io_->shared().router.find_name(path_);
  if (endpoint_ == nullptr) return end(fail(Code::kUnimplemented, unknown_method(io_->shared().router, path_)));
  if (!foreign_encoding_.empty()) {
    return end(fail(Code::kUnimplemented,
                    "grpc: Decompressor is not installed for grpc-encoding \"" + foreign_encoding_ + "\""));
  }
  set_deadline();
  if (over()) return;
  if (endpoint_->stream != nullptr) return open_stream();
  wanted_.store(true, std::memory_order_release);
}

void GrpcCall::refuse(int status) {
  const std::string text = std::to_string(status);
  const nghttp2_nv headers[] = {header(":status", text), header("content-length", "0")};
  headed_ = true;
  outcome_ = Status();
  connection_->submit_head(*this, headers, std::size(headers), /*last=*/true);
}

// --- Its messages

// What is kept of this request has changed; false: it is too much together with all others.
bool GrpcCall::keep(size_t bytes_of_request) {
  const size_t now = in_.size() + bytes_of_request;
  connection_->keep(kept_, now);
  kept_ = now;
  if (!connection_->crowded()) return true;
  io_->shared().requests_refused.fetch_add(1, std::memory_order_relaxed);
  end(fail(Code::kResourceExhausted, kTooMany));
  return false;
}

void GrpcCall::on_data(std::string_view data) {
  if (over() || endpoint_ == nullptr) return connection_->consume(id_, data.size());
  if (is_stream()) {
    in_.append(data);
    unconsumed_ += data.size();
    if (keep(0)) stream_->wake();
    return;
  }
  connection_->consume(id_, data.size());
  if (request_ != nullptr) return end(fail(Code::kInternal, "a unary call has one request message"));
  in_.append(data);
  if (keep(0)) read_unary();
}

void GrpcCall::on_end() {
  ended_ = true;
  if (over()) return;
  if (is_stream()) return stream_->wake();
  if (request_ == nullptr && wanted(0)) end(fail(Code::kInternal, "the request has no whole message"));
}

// The first message of in_, if it is all there; `end` is where the next one begins.
Result<MessagePtr> GrpcCall::next_message(size_t& end) {
  const std::string_view in = std::string_view(in_).substr(end);
  if (in.size() < grpc::kPrefixBytes) return MessagePtr();
  TRY_ASSIGN(const grpc::Prefix prefix, grpc::read_prefix(in));
  const size_t limit = io_->limits().message_bytes_max();
  if (prefix.length > limit) return fail(too_large(prefix.length));
  if (in.size() - grpc::kPrefixBytes < prefix.length) {
    if (in_.capacity() < prefix.length) in_.reserve(end + grpc::kPrefixBytes + prefix.length);
    return MessagePtr();
  }
  std::string_view bytes = in.substr(grpc::kPrefixBytes, prefix.length);
  std::string unpacked;
  if (prefix.compressed) {
    if (!gzip_) return fail(Code::kInternal, "grpc: compressed flag set with identity or empty encoding");
    TRY_ASSIGN(unpacked, grpc::gunzip(bytes, limit));
    bytes = unpacked;
  }
  MessagePtr message((is_stream() ? endpoint_->stream->request : endpoint_->unary->request)->New());
  if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return fail(Code::kInternal, "grpc: error unmarshalling request: not a message of this method");
  }
  end += grpc::kPrefixBytes + prefix.length;
  return message;
}

void GrpcCall::read_unary() {
  size_t taken = 0;
  auto message = next_message(taken);
  if (!message) return end(fail(message.error()));
  if (*message == nullptr) return;
  request_ = std::move(*message);
  if (taken < in_.size()) return end(fail(Code::kInternal, "a unary call has one request message"));
  std::string().swap(in_);
  if (keep(taken)) connection_->call_ready(shared_from_this());
}

void GrpcCall::run() {
  if (over()) return;
  CallInfo info{std::move(token_), connection_->peer(), io_->index(), deadline_};
  endpoint_->unary->handler(UnaryCall{std::move(request_), std::move(info), Reply(shared_from_this(), 0)});
}

// --- Streams

void GrpcCall::open_stream() {
  auto& open = io_->shared().streams_open;
  if (open.fetch_add(1) >= io_->limits().streams_max) {
    open.fetch_sub(1);
    return end(fail(Code::kResourceExhausted, kTooMany));
  }
  stream_ = std::make_shared<Stream>(*io_, *connection_, static_cast<uint64_t>(id_), Codec::kGrpc);
  connection_->begin_streams();
  CallInfo info{std::move(token_), connection_->peer(), io_->index(), deadline_};
  auto opened = endpoint_->stream->open({stream_, std::move(info)});
  if (!opened) return end(fail(opened.error()));
  handler_ = std::move(*opened);
  CHECK(handler_ != nullptr, "a stream that was accepted has a handler");
  stream_->wake();
}

// Messages are handed over one by one, as fast as the handler and the output take them; the window of the stream opens
// as they are taken.
void GrpcCall::deliver() {
  size_t taken = 0;
  bool held_back = false;
  while (!half_closed_ && !stream_->finishing()) {
    held_back = output_full() || !handler_->may_receive();
    if (held_back) break;
    auto message = next_message(taken);
    if (!message) {
      stream_->finish(fail(message.error()));
      break;
    }
    if (*message == nullptr) {
      if (!ended_) break;
      half_closed_ = true;  // also in the middle of a message: there will be no more of it
      handler_->on_half_close();
      break;
    }
    handler_->on_message(std::move(*message));
    CallSink sink(*this);
    if (!output_full()) handler_->pull(sink);
  }
  in_.erase(0, taken);
  if (in_.empty()) shrink(in_);
  if (stream_->finishing()) in_.clear();
  if (!held_back || unconsumed_ > in_.size()) {
    const size_t open = held_back ? unconsumed_ - in_.size() : unconsumed_;
    unconsumed_ -= open;
    connection_->consume(id_, open);
  }
  (void)keep(0);
}

void GrpcCall::pump() {
  if (over() || handler_ == nullptr) return;
  deliver();
  if (over()) return;
  CallSink sink(*this);
  if (!output_full()) handler_->pull(sink);
  pull_again_ = output_full();
  if (stream_->finishing() && !pull_again_) end(stream_->outcome());
}

std::unique_ptr<StreamHandler> GrpcCall::close_stream() {
  if (stream_ == nullptr) return nullptr;
  stream_->detach();
  stream_.reset();
  io_->shared().streams_open.fetch_sub(1);
  return std::move(handler_);
}

// --- Answers

void GrpcCall::send(std::string bytes) { add_body({std::move(bytes), nullptr}); }
void GrpcCall::send(std::shared_ptr<const Encoded> encoded) { add_body({{}, std::move(encoded)}); }

void GrpcCall::add_body(Piece piece) {
  const size_t bytes = piece.view().size();
  if (!is_stream()) connection_->queued(0, bytes);
  body_bytes_ += bytes;
  body_.push_back(std::move(piece));
  if (headed_) return connection_->resume(*this);
  headed_ = true;
  const nghttp2_nv headers[] = {header(":status", "200"), header("content-type", kGrpcType)};
  connection_->submit_head(*this, headers, std::size(headers), /*last=*/false);
}

// After what is queued. Without anything queued or sent it is all in one frame.
void GrpcCall::end(Status outcome) {
  outcome_ = std::move(outcome);
  wanted_.store(false, std::memory_order_release);
  timer_.reset();
  request_.reset();
  std::string().swap(in_);
  connection_->keep(kept_, 0);
  kept_ = 0;
  connection_->consume(id_, std::exchange(unconsumed_, 0));
  close_stream();
  if (headed_) return connection_->resume(*this);
  headed_ = true;
  if (*outcome_) {
    const nghttp2_nv headers[] = {header(":status", "200"), header("content-type", kGrpcType)};
    return connection_->submit_head(*this, headers, std::size(headers), /*last=*/false);
  }
  const Trailers trailers(*outcome_);
  const nghttp2_nv headers[] = {header(":status", "200"), header("content-type", kGrpcType), trailers.status(),
                                trailers.message()};
  connection_->submit_head(*this, headers, trailers.has_message() ? 4 : 3, /*last=*/true);
}

void GrpcCall::submit_trailers(nghttp2_session* session) {
  const Trailers trailers(*outcome_);
  const nghttp2_nv headers[] = {trailers.status(), trailers.message()};
  (void)nghttp2_submit_trailer(session, id_, headers, trailers.has_message() ? 2 : 1);
}

void GrpcCall::take_body(std::string& to, size_t bytes) {
  CHECK(bytes <= body_bytes_);
  body_bytes_ -= bytes;
  if (!is_stream() && connection_ != nullptr) connection_->queued(bytes, 0);
  while (bytes > 0) {
    Piece& piece = body_[body_first_];
    const std::string_view text = piece.view().substr(body_offset_, bytes);
    to.append(text);
    bytes -= text.size();
    body_offset_ += text.size();
    if (body_offset_ < piece.view().size()) break;
    piece = Piece();
    body_offset_ = 0;
    if (++body_first_ == body_.size()) {
      body_.clear();
      body_first_ = 0;
    }
  }
  if (pull_again_ && !output_full() && stream_ != nullptr) {
    pull_again_ = false;
    stream_->wake();
  }
}

// --- Ends

void GrpcCall::set_deadline() {
  if (!deadline_) return;
  if (*deadline_ <= IoThread::Clock::now()) return on_deadline();
  timer_ = std::make_unique<boost::asio::steady_timer>(io_->context(), *deadline_);
  timer_->async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->on_deadline();
  });
}

void GrpcCall::on_deadline() {
  if (over()) return;
  if (handler_) handler_->on_cancel();
  end(fail(Code::kDeadlineExceeded, "context deadline exceeded"));
}

void GrpcCall::stop() {
  if (over() || !is_stream()) return;  // a unary call is let finish
  if (handler_) handler_->on_cancel();
  end(fail(Code::kUnavailable, kStopped));
}

void GrpcCall::on_closed() {
  if (connection_ == nullptr) return;
  wanted_.store(false, std::memory_order_release);
  timer_.reset();
  request_.reset();
  if (!is_stream()) connection_->queued(body_bytes_, 0);
  connection_->keep(kept_, 0);
  const auto handler = close_stream();
  connection_ = nullptr;
  body_.clear();
  body_bytes_ = 0;
  if (handler != nullptr) handler->on_cancel();
}

Error GrpcCall::too_large(size_t size) const {
  return {Code::kResourceExhausted, "grpc: received message larger than max (" + std::to_string(size) + " vs. " +
                                        std::to_string(io_->limits().message_bytes_max()) + ")"};
}

}  // namespace http
