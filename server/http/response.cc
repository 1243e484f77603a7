#include "http/response.h"

#include <charconv>

#include "http/json_write.h"

namespace http {
namespace {

constexpr std::string_view kCors =
    "Access-Control-Allow-Headers: accept, content-type, authorization\r\n"
    "Access-Control-Allow-Methods: POST, GET, OPTIONS, PUT, DELETE\r\n"
    "Access-Control-Allow-Origin: *\r\n";
constexpr std::string_view kCallType =
    "Content-Type: application/json\r\n"
    "Grpc-Metadata-Content-Type: application/grpc\r\n";

void append_number(std::string& out, size_t value) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
}

// Not strftime: a date of HTTP must not follow the locale.
std::string date_line(std::time_t second) {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm utc{};
  gmtime_r(&second, &utc);
  const auto two = [](int value) {
    return std::string{static_cast<char>('0' + value / 10 % 10), static_cast<char>('0' + value % 10)};
  };
  return std::string("Date: ") + kDays[utc.tm_wday] + ", " + two(utc.tm_mday) + " " + kMonths[utc.tm_mon] + " " +
         std::to_string(utc.tm_year + 1900) + " " + two(utc.tm_hour) + ":" + two(utc.tm_min) + ":" + two(utc.tm_sec) +
         " GMT\r\n";
}

}  // namespace

int http_status(Code code) {
  switch (code) {
    case Code::kOk:
      return 200;
    case Code::kCancelled:
      return 499;
    case Code::kInvalidArgument:
    case Code::kFailedPrecondition:
    case Code::kOutOfRange:
      return 400;
    case Code::kDeadlineExceeded:
      return 504;
    case Code::kNotFound:
      return 404;
    case Code::kAlreadyExists:
    case Code::kAborted:
      return 409;
    case Code::kPermissionDenied:
      return 403;
    case Code::kUnauthenticated:
      return 401;
    case Code::kResourceExhausted:
      return 429;
    case Code::kUnimplemented:
      return 501;
    case Code::kUnavailable:
      return 503;
    case Code::kUnknown:
    case Code::kInternal:
    case Code::kDataLoss:
      return 500;
  }
  return 500;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 307:
      return "Temporary Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Request Entity Too Large";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

void Responses::refresh() {
  const std::time_t now = std::time(nullptr);
  if (now == second_) return;
  second_ = now;
  date_ = date_line(now);
  call_head_ = "HTTP/1.1 200 OK\r\n";
  call_head_.append(kCors).append(kCallType).append(date_).append("Content-Length: ");
}

void Responses::call_head(std::string& out, size_t length) {
  refresh();
  out.append(call_head_);
  append_number(out, length);
  out.append("\r\n\r\n");
}

void Responses::head(std::string& out, const HeadOptions& options) {
  refresh();
  out.append(options.http_1_1 ? "HTTP/1.1 " : "HTTP/1.0 ");
  append_number(out, static_cast<size_t>(options.status));
  out.append(" ").append(reason_phrase(options.status)).append("\r\n").append(kCors);
  if (!options.content_type.empty()) out.append("Content-Type: ").append(options.content_type).append("\r\n");
  out.append(options.more).append(date_);
  if (options.length) {
    out.append("Content-Length: ");
    append_number(out, *options.length);
    out.append("\r\n");
  }
  if (options.chunked) out.append("Transfer-Encoding: chunked\r\n");
  if (!options.keep_alive) {
    out.append("Connection: close\r\n");
  } else if (!options.http_1_1) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append("\r\n");
}

void Responses::error(std::string& out, const Error& error, HeadOptions options, bool without_body) {
  std::string body;
  json::append_error(body, error);
  const std::string headers = error_headers(error);
  options.status = http_status(error.code);
  options.content_type = "application/json";
  options.more = headers;
  text(out, body, options, without_body);
}

void Responses::text(std::string& out, std::string_view body, HeadOptions options, bool without_body) {
  options.length = body.size();
  head(out, options);
  if (!without_body) out.append(body);
}

std::string error_headers(const Error& error) {
  if (error.code != Code::kUnauthenticated) return {};
  std::string line = "Www-Authenticate: ";
  for (const char c : error.message) line += c >= 0x20 && c < 0x7f ? c : ' ';
  return line + "\r\n";
}

}  // namespace http
