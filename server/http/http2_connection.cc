#include "http/http2_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/check.h"
#include "http/grpc_call.h"

namespace http {
namespace {

std::string_view view(const uint8_t* bytes, size_t size) { return {reinterpret_cast<const char*>(bytes), size}; }

const nghttp2_option* options() {
  static const nghttp2_option* made = [] {
    nghttp2_option* option = nullptr;
    CHECK(nghttp2_option_new(&option) == 0);
    nghttp2_option_set_no_auto_window_update(option, 1);  // windows open as messages are taken
    return option;
  }();
  return made;
}

}  // namespace

nghttp2_session_callbacks* Http2Connection::callbacks() {
  static nghttp2_session_callbacks* made = [] {
    nghttp2_session_callbacks* all = nullptr;
    CHECK(nghttp2_session_callbacks_new(&all) == 0);
    nghttp2_session_callbacks_set_on_begin_headers_callback(
        all, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
          if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
          return of(user).on_begin(frame->hd.stream_id);
        });
    nghttp2_session_callbacks_set_on_header_callback(
        all, [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                const uint8_t* value, size_t value_size, uint8_t, void* user) {
          return of(user).on_header(frame->hd.stream_id, view(name, name_size), view(value, value_size));
        });
    nghttp2_session_callbacks_set_on_frame_recv_callback(all,
                                                         [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
                                                           of(user).on_frame(*frame);
                                                           return 0;
                                                         });
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        all, [](nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size, void* user) {
          of(user).on_data(id, view(data, size));
          return 0;
        });
    nghttp2_session_callbacks_set_on_frame_send_callback(all,
                                                         [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
                                                           of(user).on_sent(*frame);
                                                           return 0;
                                                         });
    nghttp2_session_callbacks_set_on_stream_close_callback(all, [](nghttp2_session*, int32_t id, uint32_t, void* user) {
      of(user).on_closed(id);
      return 0;
    });
    nghttp2_session_callbacks_set_send_data_callback(
        all, [](nghttp2_session*, nghttp2_frame*, const uint8_t* head, size_t length, nghttp2_data_source* source,
                void* user) { return of(user).send_data(*static_cast<GrpcCall*>(source->ptr), head, length); });
    return all;
  }();
  return made;
}

Http2Connection::Http2Connection(IoThread& io, Socket socket, std::shared_ptr<const Peer> peer, bool tcp)
    : Connection(io, std::move(socket), std::move(peer), tcp) {
  CHECK(nghttp2_session_server_new2(&session_, callbacks(), this, options()) == 0);
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, kHttp2CallsMax},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kHttp2StreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, kHeadBytesMax},
  };
  CHECK(nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings)) == 0);
  CHECK(nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kHttp2ConnectionWindow) == 0);
}

Http2Connection::~Http2Connection() { nghttp2_session_del(session_); }

void Http2Connection::begin(std::string_view first) {
  on_input(first);
  unsettle();
}

// A watcher that does not read costs what is in Output and this; the kernel would buffer megabytes.
void Http2Connection::begin_streams() {
  if (!tcp_ || has_streams_) return;
  has_streams_ = true;
  const int lowat = kStreamUnsentBytesMax;
  (void)::setsockopt(native_socket(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof(lowat));
}

// --- What comes in

void Http2Connection::on_input(std::string_view data) {
  if (lingering_) return;
  const ssize_t done = nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(data.data()), data.size());
  // What can be understood but may not be is answered with GOAWAY by nghttp2 itself; this is a flood, or no HTTP/2.
  if (done < 0) return linger();
  unsettle();
}

GrpcCall* Http2Connection::find(int32_t id) {
  const auto at = calls_.find(id);
  return at == calls_.end() ? nullptr : at->second.get();
}

int Http2Connection::on_begin(int32_t id) {
  if (stopping_) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  calls_.emplace(id, std::make_shared<GrpcCall>(*this, id));
  return 0;
}

int Http2Connection::on_header(int32_t id, std::string_view name, std::string_view value) {
  GrpcCall* call = find(id);
  if (call == nullptr || call->add_header(name, value)) return 0;
  return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

void Http2Connection::on_frame(const nghttp2_frame& frame) {
  const auto call = calls_.find(frame.hd.stream_id);
  if (call == calls_.end()) return;
  const auto kept = call->second;  // it may end within
  const bool head = frame.hd.type == NGHTTP2_HEADERS && frame.headers.cat == NGHTTP2_HCAT_REQUEST;
  if (head) kept->on_headers();
  const bool last = (frame.hd.type == NGHTTP2_HEADERS || frame.hd.type == NGHTTP2_DATA) &&
                    (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  if (last) kept->on_end();
}

void Http2Connection::on_data(int32_t id, std::string_view data) {
  (void)nghttp2_session_consume_connection(session_, data.size());
  if (const auto call = calls_.find(id); call != calls_.end()) {
    const auto kept = call->second;
    kept->on_data(data);
  }
}

void Http2Connection::on_closed(int32_t id) {
  const auto node = calls_.extract(id);
  if (!node.empty()) node.mapped()->on_closed();
}

// --- Calls

void Http2Connection::post(Letter letter) { inbox_->put(std::move(letter)); }

void Http2Connection::receive(Letter& letter) {
  if (const auto call = calls_.find(static_cast<int32_t>(letter.call)); call != calls_.end()) {
    const auto kept = call->second;
    kept->take(letter);
  }
}

void Http2Connection::call_ready(std::shared_ptr<GrpcCall> call) {
  ready_.push_back(std::move(call));
  tell_ready();
}

void Http2Connection::tell_ready() {
  if (ready_told_ || closed()) return;
  ready_told_ = true;
  io_.call_ready(shared_from_this());
}

// Calls wait while the client does not take the answers of those before, and for others after some.
void Http2Connection::run_calls() {
  ready_told_ = false;
  if (closed()) return;
  size_t done = 0;
  while (done < ready_.size() && done < kHttp2CallsAtOnce && queued_ < kUnaryOutputBytesMax) ready_[done++]->run();
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(done));
  unsettle();
}

void Http2Connection::pump(uint64_t stream) {
  if (const auto call = calls_.find(static_cast<int32_t>(stream)); call != calls_.end()) {
    const auto kept = call->second;
    kept->pump();
    unsettle();
  }
}

void Http2Connection::keep(size_t before, size_t after) {
  kept_ += after - before;
  (void)account(kept_);
}

void Http2Connection::consume(int32_t id, size_t bytes) {
  if (bytes > 0) (void)nghttp2_session_consume_stream(session_, id, bytes);
}

// --- Answers

void Http2Connection::submit_head(GrpcCall& call, const nghttp2_nv* headers, size_t count, bool last) {
  nghttp2_data_provider body{};
  body.source.ptr = &call;
  body.read_callback = [](nghttp2_session*, int32_t, uint8_t*, size_t length, uint32_t* flags,
                          nghttp2_data_source* source, void* user) {
    return of(user).read_body(*static_cast<GrpcCall*>(source->ptr), length, flags);
  };
  (void)nghttp2_submit_response(session_, call.id(), headers, count, last ? nullptr : &body);
  unsettle();
}

void Http2Connection::resume(GrpcCall& call) {
  (void)nghttp2_session_resume_data(session_, call.id());
  unsettle();
}

ssize_t Http2Connection::read_body(GrpcCall& call, size_t length, uint32_t* flags) {
  const size_t bytes = std::min(length, call.body_bytes());
  if (bytes == 0 && !call.body_ends()) return NGHTTP2_ERR_DEFERRED;
  if (bytes > 0) *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (bytes == call.body_bytes() && call.body_ends()) {
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    call.submit_trailers(session_);
  }
  return static_cast<ssize_t>(bytes);
}

int Http2Connection::send_data(GrpcCall& call, const uint8_t* head, size_t length) {
  constexpr size_t kFrameHead = 9;
  if (out_.size() >= kHttp2OutputBytesMax) return NGHTTP2_ERR_WOULDBLOCK;
  std::string& out = out_.tail();
  out.append(view(head, kFrameHead));
  call.take_body(out, length);
  if (!call.is_stream()) progress_ = true;
  return 0;
}

// A client that has not ended its request is told that nobody will read the rest.
void Http2Connection::on_sent(const nghttp2_frame& frame) {
  const bool last = (frame.hd.type == NGHTTP2_HEADERS || frame.hd.type == NGHTTP2_DATA) &&
                    (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  if (!last || nghttp2_session_get_stream_remote_close(session_, frame.hd.stream_id) != 0) return;
  (void)nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, frame.hd.stream_id, NGHTTP2_NO_ERROR);
}

void Http2Connection::before_write() {
  if (lingering_) return;
  while (out_.size() < kHttp2OutputBytesMax && pass_bytes_left_to_make() > 0) {
    const uint8_t* bytes = nullptr;
    const size_t before = out_.size();
    const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
    if (size < 0) return abort();
    if (size > 0) out_.tail().append(view(bytes, static_cast<size_t>(size)));
    if (size == 0 && out_.size() == before) break;
  }
}

void Http2Connection::after_write() {
  if (lingering_) {
    if (out_.empty()) ::shutdown(native_socket(), SHUT_WR);
    return;
  }
  const bool more = nghttp2_session_want_write(session_) != 0;
  if (more && !writing_ && !awaits_pass_) {
    if (pass_bytes_left_to_make() == 0) {
      wait_pass();
    } else {
      unsettle();
    }
  }
  if (!ready_.empty() && queued_ < kUnaryOutputBytesMax) tell_ready();
  const bool watched = queued_ > 0 && stall_deadline_ == IoThread::Clock::time_point::max();
  if (watched || progress_) stall_deadline_ = io_.now() + io_.limits().write_timeout;
  if (queued_ == 0) stall_deadline_ = IoThread::Clock::time_point::max();
  progress_ = false;
  if (more || !out_.empty()) return;
  if (stopping_ && calls_.empty()) return abort();
  if (nghttp2_session_want_read(session_) == 0) linger();
}

// --- Ends

// Closing with unread input would reset the connection and could destroy the last frames on their way.
void Http2Connection::linger() {
  if (lingering_) return;
  before_write();  // GOAWAY
  if (closed()) return;
  lingering_ = true;
  linger_deadline_ = io_.now() + kLingerTimeout;
  unsettle();
}

void Http2Connection::on_abort() {
  ready_.clear();
  auto calls = std::move(calls_);
  calls_.clear();
  for (const auto& [id, call] : calls) call->on_closed();
}

void Http2Connection::begin_stop() {
  stopping_ = true;
  (void)nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_),
                              NGHTTP2_NO_ERROR, nullptr, 0);
  std::vector<std::shared_ptr<GrpcCall>> calls;
  for (const auto& [id, call] : calls_) calls.push_back(call);
  for (const auto& call : calls) call->stop();
  unsettle();
}

void Http2Connection::sweep(IoThread::Clock::time_point now) {
  if (now >= linger_deadline_ || now >= stall_deadline_) abort();
}

}  // namespace http
