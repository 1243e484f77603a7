#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "http/grpc_wire.h"
#include "http/http1_connection.h"
#include "http/json_write.h"
#include "http/path.h"
#include "http/stream.h"

namespace http {
namespace {

constexpr std::string_view kGateway = "/v3/";
constexpr std::string_view kOldGateway = "/v3beta/";
constexpr std::string_view kPlainText = "text/plain; charset=utf-8";
constexpr std::string_view kNoSniff = "X-Content-Type-Options: nosniff\r\n";
constexpr std::string_view kCallHeader = "Grpc-Metadata-Content-Type: application/grpc\r\n";

const Error kCrowded{Code::kResourceExhausted, "etcdserver: too many requests"};

std::string html_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

bool plain_target(std::string_view target) {
  return target.starts_with('/') && target.find_first_of("%?") == std::string_view::npos;
}

}  // namespace

// --- Heads

void Http1Connection::begin_request() {
  head_.clear();
  parser_.emplace(head_);
  draining_ = false;
  query_.clear();
  body_seen_ = body_seen_before_ = 0;
  call_deadline_.reset();
  ++call_;
  set_deadline(io_.limits().head_timeout);
}

void Http1Connection::read_head(std::string_view& in) {
  if (!parser_) {
    // Some clients end a body with a line break that its length does not count.
    while (in.starts_with("\r\n")) in.remove_prefix(2);
    if (in.empty()) return;
    begin_request();
  }
  switch (parser_->parse_head(in)) {
    case RequestParser::Result::kMore:
      return;
    case RequestParser::Result::kBad:
      return fail_connection(400);
    case RequestParser::Result::kHeadTooLarge:
      return fail_connection(431);
    case RequestParser::Result::kDone:
      break;
  }
  on_head();
  // A 100 is for a client that waits before it sends its body.
  if (phase_ == Phase::kBody || phase_ == Phase::kStream) {
    if (head_.expects_continue && http_1_1_ && !draining_ && in.empty() && !body_reader_.done()) {
      out_.tail() += "HTTP/1.1 100 Continue\r\n\r\n";
    }
  }
}

void Http1Connection::on_head() {
  http_1_1_ = parser_->http_1_1();
  keep_alive_ = parser_->wants_keep_alive() && !read_eof_ && !io_.stopping();
  if (head_.foreign_encoding) return fail_connection(501);
  if (http_1_1_ && !head_.has_host) return fail_connection(400);
  phase_ = Phase::kBody;
  const auto length = parser_->declared_length();
  body_reader_ = parser_->is_chunked() ? BodyReader::of_chunks() : BodyReader::of_length(length.value_or(0));
  set_deadline(io_.limits().body_progress_period);
  if (head_.expects_other) return fail_connection(417);
  if (head_.method == "OPTIONS") return refuse_text(200, {});

  // Most paths need no decoding and no cleaning.
  std::string_view path = head_.target;
  if (!plain_target(path)) {
    auto target = parse_target(head_.target);
    if (!target) return fail_connection(400);
    path_ = std::move(target->path);
    query_ = std::move(target->query);
    path = path_;
  }
  if (path.starts_with(kOldGateway)) {
    path_ = std::string(kGateway) + std::string(path.substr(kOldGateway.size()));
    path = path_;
  }
  std::string clean =
      path.find("//") != path.npos || path.find("/.") != path.npos ? clean_path(path) : std::string(path);
  if (clean == "/v3") clean += '/';
  if (clean != path) {
    clean = percent_encode_path(clean);
    const std::string location = "Location: " + clean + (query_.empty() ? "" : "?" + query_) + "\r\n";
    const bool get = head_.method == "GET" || head_only();
    HeadOptions options;
    options.status = 307;
    options.more = location;
    if (get) options.content_type = "text/html; charset=utf-8";
    options.keep_alive = decide_keep_alive(/*discards_body=*/true);
    options.http_1_1 = http_1_1_;
    std::string answer;
    const std::string page = get ? "<a href=\"" + html_escape(clean) + "\">Temporary Redirect</a>.\n\n" : "";
    io_.responses().text(answer, page, options, head_only());
    return refuse(answer);
  }
  endpoint_ = io_.shared().router.find_path(path);
  if (path.starts_with(kGateway)) return on_gateway_head();
  if (endpoint_ == nullptr) return refuse_text(404, "404 page not found\n", kNoSniff);
  if (endpoint_->plain->get_only && head_.method != "GET") {
    return refuse_text(405, "Method Not Allowed\n", "Allow: GET\r\nX-Content-Type-Options: nosniff\r\n");
  }
  path_ = std::string(path);
}

void Http1Connection::on_gateway_head() {
  if (endpoint_ == nullptr) return refuse_error({Code::kNotFound, "Not Found"});
  if (head_.method != "POST") return refuse_error({Code::kUnimplemented, "Method Not Allowed"});
  if (head_.has_grpc_timeout && !read_timeout(head_.grpc_timeout)) {
    return refuse_error({Code::kInvalidArgument, "invalid grpc-timeout: " + head_.grpc_timeout});
  }
  if (endpoint_->stream != nullptr && !endpoint_->stream->single_request) return open_stream();
  if (const auto length = parser_->declared_length(); length && *length > io_.limits().body_bytes_max()) {
    return refuse_error(too_large(*length));
  }
}

bool Http1Connection::read_timeout(std::string_view text) {
  const auto timeout = grpc::parse_timeout(text);
  if (timeout) call_deadline_ = IoThread::Clock::now() + *timeout;
  return timeout.has_value();
}

// --- Bodies

void Http1Connection::read_body(std::string_view& in) {
  const bool wanted = !draining_ && endpoint_ != nullptr && endpoint_->plain == nullptr;
  const size_t limit = io_.limits().body_bytes_max();
  if (wanted && body_seen_ == 0) {
    // The usual body is here as a whole: it is parsed where it lies.
    if (const auto length = parser_->declared_length(); length && in.size() >= *length) {
      const std::string_view body = in.substr(0, *length);
      in.remove_prefix(*length);
      body_reader_ = BodyReader();
      return complete_body(body);
    }
    if (const auto length = parser_->declared_length()) body_.reserve(std::min<size_t>(*length, kReadBytes));
  }
  const size_t before = in.size();
  const auto result = body_reader_.read(in, wanted ? &body_ : nullptr, limit + 1);
  body_seen_ += before - in.size();
  if (wanted && body_.size() > limit) return refuse_error(too_large(body_.size()));
  if (wanted && !account()) return refuse_crowded();
  if (result == BodyReader::Result::kDone) return complete_body(body_);
  if (result == BodyReader::Result::kBad) return fail_connection(400);
  if (draining_ && body_seen_ > kDrainBytesMax) {
    keep_alive_ = false;
    finish_request();
  }
}

void Http1Connection::complete_body(std::string_view body) {
  if (draining_) return finish_request();
  if (endpoint_->plain == nullptr) return complete_message(body);
  begin_call();
  io_.call_ready(shared_from_this());
}

void Http1Connection::complete_message(std::string_view body) {
  const Message* prototype = endpoint_->unary ? endpoint_->unary->request : endpoint_->stream->request;
  begin_call();
  const size_t size = body.size();
  if (body_.empty()) call_bytes_ = size;
  if (!account()) {
    io_.shared().requests_refused.fetch_add(1, std::memory_order_relaxed);
    return respond(fail(kCrowded));
  }
  request_.reset(prototype->New());
  const Status parsed = json::parse(body, *request_);
  if (!parsed) return respond(fail(parsed.error()));
  call_bytes_ = size;  // about what the message takes until it is answered
  shrink(body_);
  // The message is smaller than its JSON, so most need not be measured.
  if (size > io_.limits().message_bytes_max()) {
    if (const size_t bytes = request_->ByteSizeLong(); bytes > io_.limits().message_bytes_max()) {
      return respond(fail(too_large(bytes)));
    }
  }
  if (endpoint_->stream != nullptr) return open_stream();
  io_.call_ready(shared_from_this());
}

void Http1Connection::begin_call() {
  phase_ = Phase::kCall;
  deadline_ = IoThread::Clock::time_point::max();
  wanted_call_.store(call_, std::memory_order_release);
}

Error Http1Connection::too_large(size_t size) const {
  return {Code::kResourceExhausted, "grpc: received message larger than max (" + std::to_string(size) + " vs. " +
                                        std::to_string(io_.limits().message_bytes_max()) + ")"};
}

// --- Refusals: answers that are known before the body is read. They go out at once; the body is read and dropped.

// A body that is long, or that the client holds back, is not waited for: the connection is closed after the answer.
bool Http1Connection::decide_keep_alive(bool discards_body) {
  if (discards_body && !body_reader_.done()) {
    const auto length = parser_->declared_length();
    if (head_.expects_continue || (length && *length > kDrainBytesMax)) keep_alive_ = false;
  }
  return keep_alive_;
}

HeadOptions Http1Connection::head_options() const {
  HeadOptions options;
  options.http_1_1 = http_1_1_;
  options.keep_alive = keep_alive_;
  return options;
}

void Http1Connection::refuse(std::string_view answer) {
  out_.tail() += answer;
  if (body_reader_.done() || !keep_alive_) return finish_request();
  draining_ = true;
  shrink(body_);
  unsettle();
}

void Http1Connection::refuse_text(int status, std::string_view body, std::string_view headers) {
  decide_keep_alive(true);
  HeadOptions options = head_options();
  options.status = status;
  if (!body.empty()) options.content_type = kPlainText;
  options.more = headers;
  std::string answer;
  io_.responses().text(answer, body, options, head_only());
  refuse(answer);
}

void Http1Connection::refuse_error(const Error& error) {
  decide_keep_alive(true);
  std::string answer;
  io_.responses().error(answer, error, head_options(), head_only());
  refuse(answer);
}

// All connections together keep as much of requests as they may.
void Http1Connection::refuse_crowded() {
  io_.shared().requests_refused.fetch_add(1, std::memory_order_relaxed);
  refuse_error(kCrowded);
}

// What cannot be understood, or came too slowly: where the next request would begin is not known.
void Http1Connection::fail_connection(int status) {
  keep_alive_ = false;
  HeadOptions options = head_options();
  options.status = status;
  options.content_type = kPlainText;
  const std::string body = std::to_string(status) + " " + std::string(reason_phrase(status));
  if (!draining_) io_.responses().text(out_.tail(), body, options, head_only());  // else it has had its answer
  parser_.reset();
  phase_ = Phase::kHead;
  close_after_output(/*linger=*/true);
}

// --- Calls

CallInfo Http1Connection::call_info() { return {std::move(head_.token), peer_, io_.index(), call_deadline_}; }

void Http1Connection::run_calls() {
  if (phase_ != Phase::kCall || endpoint_ == nullptr) return;
  if (endpoint_->plain != nullptr) {
    return endpoint_->plain->handler({head_.method, std::move(path_), std::move(query_)}, PlainReply(self(), call_));
  }
  if (call_deadline_) {
    if (*call_deadline_ <= IoThread::Clock::now()) return on_call_deadline();
    set_call_deadline();
  }
  endpoint_->unary->handler(UnaryCall{std::move(request_), call_info(), Reply(self(), call_)});
}

void Http1Connection::respond(const Answer& answer) {
  if (in_parts_) return abort();  // its head is out, and cannot be taken back
  if (answer) {
    CHECK(*answer != nullptr, "a good answer has a message");
    std::string& body = io_.scratch();
    body.clear();
    json::append(body, **answer);
    return respond_json(body);
  }
  io_.responses().error(out_.tail(), answer.error(), head_options(), /*without_body=*/false);
  finish_request();
}

void Http1Connection::respond_json(std::string& body) {
  std::string& out = out_.tail();
  if (http_1_1_ && keep_alive_) {
    io_.responses().call_head(out, body.size());
  } else {
    HeadOptions options = head_options();
    options.content_type = "application/json";
    options.more = kCallHeader;
    options.length = body.size();
    io_.responses().head(out, options);
  }
  if (body.size() < kOutputPieceBytes) {
    out.append(body);
  } else {
    out_.add(std::move(body));
  }
  finish_request();
}

void Http1Connection::respond_part(const Part& part) {
  CHECK(part.encoded->codec == Codec::kJson, "encoded for another wire");
  HeadOptions options = head_options();
  options.content_type = "application/json";
  options.more = kCallHeader;
  if (part.last && !in_parts_) {
    options.length = part.encoded->bytes.size();
    io_.responses().head(out_.tail(), options);
    out_.add(part.encoded);
    return finish_request();
  }
  if (!in_parts_) {
    in_parts_ = parts_wait_ = true;
    if (!http_1_1_) keep_alive_ = false;  // the end of the answer is the end of the connection
    options.chunked = http_1_1_;
    options.keep_alive = keep_alive_;
    io_.responses().head(out_.tail(), options);
  }
  add_chunk(part.encoded->bytes, &part.encoded);
  if (!part.last) return unsettle();
  if (http_1_1_) out_.tail().append("0\r\n\r\n");
  finish_request();
}

void Http1Connection::respond_plain(const PlainResponse& response) {
  std::string headers;
  for (const auto& [name, value] : response.headers) headers.append(name).append(": ").append(value).append("\r\n");
  HeadOptions options = head_options();
  options.status = response.status;
  options.content_type = response.content_type;
  options.more = headers;
  io_.responses().text(out_.tail(), response.body, options, head_only());
  finish_request();
}

}  // namespace http
