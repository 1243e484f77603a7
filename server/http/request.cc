#include "http/request.h"

#include <boost/beast/core/string.hpp>
#include <charconv>
#include <limits>

#include "base/check.h"

namespace http {
namespace {

namespace beast = boost::beast;

std::string_view std_view(beast::string_view text) { return {text.data(), text.size()}; }

// One number that Go's int64 holds. Beast takes a list of equal ones too; what stands before this server may read the
// first or none, and then the two disagree about where the next request begins.
bool is_length(std::string_view text) {
  int64_t length = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, length);
  return error == std::errc() && stop == end && length >= 0 && text.front() != '-';
}

}  // namespace

void RequestHead::clear() {
  method.clear();
  target.clear();
  token.clear();
  grpc_timeout.clear();
  has_grpc_timeout = has_host = expects_continue = expects_other = foreign_encoding = grpc_token = false;
}

RequestParser::RequestParser(RequestHead& head) : head_(head) {
  // Sizes are judged by whom they belong to: the head in parse_head(), a body by its owner.
  body_limit(std::numeric_limits<uint64_t>::max());
  header_limit(std::numeric_limits<uint32_t>::max());
}

RequestParser::Result RequestParser::parse_head(std::string_view& in) {
  CHECK(!is_header_done());
  while (!is_header_done()) {
    error_code error;
    const size_t eaten = put(boost::asio::const_buffer(in.data(), in.size()), error);
    in.remove_prefix(eaten);
    head_bytes_ += eaten;
    if (head_bytes_ + (is_header_done() ? 0 : in.size()) > kHeadBytesMax) return Result::kHeadTooLarge;
    if (error == beast::http::error::need_more) return Result::kMore;
    if (error) return Result::kBad;
  }
  return Result::kDone;
}

std::optional<uint64_t> RequestParser::declared_length() const {
  const auto length = content_length();
  if (!length) return std::nullopt;
  return *length;
}

void RequestParser::on_request_impl(verb, string_view method, string_view target, int version, error_code&) {
  head_.method.assign(method.data(), method.size());
  head_.target.assign(target.data(), target.size());
  version_ = version;
}

void RequestParser::on_field_impl(field name, string_view text, string_view value, error_code& error) {
  switch (name) {
    case field::host:
      head_.has_host = true;
      return;
    case field::content_length:
      if (!is_length(std_view(value))) error = beast::http::error::bad_content_length;
      return;
    case field::expect:
      (beast::iequals(value, "100-continue") ? head_.expects_continue : head_.expects_other) = true;
      return;
    case field::transfer_encoding:
      if (!beast::iequals(value, "chunked")) head_.foreign_encoding = true;
      return;
    case field::authorization:
      if (!head_.token.empty()) return;
      head_.token = std_view(value);
      break;
    case field::unknown:
      if (beast::iequals(text, "grpc-timeout")) {
        head_.has_grpc_timeout = !value.empty();
        head_.grpc_timeout = std_view(value);
        return;
      }
      if (head_.grpc_token || !beast::iequals(text, "grpc-metadata-token")) return;
      head_.grpc_token = true;
      head_.token = std_view(value);
      break;
    default:
      return;
  }
  if (head_.token.starts_with("Bearer ")) head_.token.erase(0, 7);
}

}  // namespace http
