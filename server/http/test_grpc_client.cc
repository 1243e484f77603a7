#include "http/test_grpc_client.h"

#include <google/protobuf/message.h>

#include <algorithm>

#include "base/check.h"
#include "http/grpc_wire.h"
#include "http/http2_headers.h"

namespace http::test {
namespace {

constexpr std::chrono::milliseconds kPatience{10'000};

std::string text(const uint8_t* bytes, size_t size) { return {reinterpret_cast<const char*>(bytes), size}; }

}  // namespace

std::string framed(const google::protobuf::Message& message) { return framed(message.SerializeAsString()); }

std::string framed(std::string_view bytes, bool compressed) {
  std::string out(grpc::kPrefixBytes, '\0');
  grpc::write_prefix(out.data(), bytes.size());
  if (compressed) out[0] = 1;
  return out.append(bytes);
}

std::string frame(uint8_t type, uint8_t flags, int32_t stream, std::string_view payload) {
  std::string out;
  for (const int shift : {16, 8, 0}) out += static_cast<char>(payload.size() >> shift & 0xff);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(stream >> shift & 0xff);
  return out.append(payload);
}

std::string GrpcAnswer::header(const std::string& name) const {
  const auto at = headers.find(name);
  return at == headers.end() ? "" : at->second;
}

std::vector<std::string> GrpcAnswer::messages() const {
  std::vector<std::string> all;
  std::string_view rest = body;
  while (rest.size() >= grpc::kPrefixBytes) {
    const auto prefix = grpc::read_prefix(rest);
    if (!prefix || rest.size() < grpc::kPrefixBytes + prefix->length) break;
    all.emplace_back(rest.substr(grpc::kPrefixBytes, prefix->length));
    rest.remove_prefix(grpc::kPrefixBytes + prefix->length);
  }
  return all;
}

GrpcClient::GrpcClient(const std::string& url, bool reads) : socket_(url) {
  nghttp2_session_callbacks* callbacks = nullptr;
  CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
  nghttp2_session_callbacks_set_on_header_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                    const uint8_t* value, size_t value_size, uint8_t, void* user) {
        static_cast<GrpcClient*>(user)->answers_[frame->hd.stream_id].headers[text(name, name_size)] =
            text(value, value_size);
        return 0;
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      callbacks, [](nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size, void* user) {
        static_cast<GrpcClient*>(user)->answers_[id].body.append(text(data, size));
        return 0;
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks,
                                                         [](nghttp2_session*, int32_t id, uint32_t error, void* user) {
                                                           auto& answer = static_cast<GrpcClient*>(user)->answers_[id];
                                                           answer.closed = true;
                                                           answer.error = error;
                                                           return 0;
                                                         });
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks,
                                                       [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
                                                         if (frame->hd.type == NGHTTP2_GOAWAY)
                                                           static_cast<GrpcClient*>(user)->going_away_ = true;
                                                         return 0;
                                                       });
  nghttp2_option* option = nullptr;
  CHECK(nghttp2_option_new(&option) == 0);
  nghttp2_option_set_no_auto_window_update(option, reads ? 0 : 1);
  CHECK(nghttp2_session_client_new2(&session_, callbacks, this, option) == 0);
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);
  CHECK(nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, nullptr, 0) == 0);
}

GrpcClient::~GrpcClient() { nghttp2_session_del(session_); }

int32_t GrpcClient::begin(std::string_view path, std::string body, bool end, Headers more) {
  Headers all = {{":method", "POST"},          {":scheme", "http"}, {":authority", "x"},
                 {":path", std::string(path)}, {"te", "trailers"},  {"content-type", "application/grpc"}};
  for (auto& field : more) {
    const auto same =
        std::find_if(all.begin(), all.end(), [&field](const auto& one) { return one.first == field.first; });
    if (same != all.end()) {
      same->second = field.second;
    } else {
      all.push_back(field);
    }
  }
  std::vector<nghttp2_nv> headers;
  for (const auto& [name, value] : all) headers.push_back(header(name, value));
  nghttp2_data_provider provider{};
  provider.source.ptr = this;
  provider.read_callback = [](nghttp2_session*, int32_t id, uint8_t* to, size_t length, uint32_t* flags,
                              nghttp2_data_source* source, void*) -> ssize_t {
    Out& out = static_cast<GrpcClient*>(source->ptr)->out_[id];
    const size_t size = std::min(length, out.bytes.size());
    if (size == 0 && !out.end) return NGHTTP2_ERR_DEFERRED;
    std::copy_n(out.bytes.data(), size, to);
    out.bytes.erase(0, size);
    if (out.bytes.empty() && out.end) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(size);
  };
  const int32_t id = nghttp2_submit_request(session_, nullptr, headers.data(), headers.size(), &provider, nullptr);
  CHECK(id > 0);
  answers_[id];
  out_[id] = {std::move(body), end};
  flush();
  return id;
}

void GrpcClient::send(int32_t call, std::string_view body, bool end) {
  out_[call].bytes.append(body);
  out_[call].end = end;
  (void)nghttp2_session_resume_data(session_, call);
  flush();
}

void GrpcClient::reset(int32_t call) {
  CHECK(nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, call, NGHTTP2_CANCEL) == 0);
  flush();
}

void GrpcClient::raw(std::string_view bytes) {
  flush();
  socket_.send(bytes);
}

void GrpcClient::flush() {
  const uint8_t* bytes = nullptr;
  for (ssize_t size = 0; (size = nghttp2_session_mem_send(session_, &bytes)) > 0;) {
    socket_.send(text(bytes, static_cast<size_t>(size)));
  }
}

bool GrpcClient::exchange(std::chrono::milliseconds wait) {
  const auto some = socket_.some(wait);
  if (!some) return false;
  if (some->empty()) {
    ended_ = true;
    return false;
  }
  const auto done = nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(some->data()), some->size());
  if (done < 0) ended_ = true;
  flush();
  return done >= 0;
}

bool GrpcClient::wait_until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (ended_ || std::chrono::steady_clock::now() > end) return false;
    (void)exchange(std::chrono::milliseconds(100));
  }
  return true;
}

void GrpcClient::pass(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (!ended_ && std::chrono::steady_clock::now() < end) (void)exchange(std::chrono::milliseconds(5));
}

const GrpcAnswer& GrpcClient::finish(int32_t call) {
  (void)wait_until([&] { return answers_[call].closed; });
  return answers_[call];
}

bool GrpcClient::has_messages(int32_t call, size_t count) {
  return wait_until([&] { return answers_[call].messages().size() >= count; });
}

GrpcAnswer GrpcClient::unary(std::string_view path, const google::protobuf::Message& request, Headers more) {
  return finish(begin(path, framed(request), true, std::move(more)));
}

bool GrpcClient::closed() {
  (void)wait_until([this] { return ended_; });
  return ended_;
}

}  // namespace http::test
