// The heads of HTTP/1.x answers, as etcd sends them: CORS headers on every one, a date, no server name.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/handler.h"

namespace http {

// How gRPC's codes become HTTP statuses (grpc-gateway's table).
int http_status(Code code);
std::string_view reason_phrase(int status);

struct HeadOptions {
  int status = 200;
  std::string_view content_type = {};  // empty: none
  std::string_view more = {};          // complete header lines, each with CRLF
  std::optional<size_t> length = {};   // none: see `chunked`
  bool chunked = false;
  bool http_1_1 = true;
  bool keep_alive = true;
};

// One per io thread: it remembers the current second's date and the head of a good answer.
class Responses {
 public:
  void head(std::string& out, const HeadOptions& options);
  // The head of a call's response message: the one that must be fast.
  void call_head(std::string& out, size_t length);

  // Whole answers.
  void error(std::string& out, const Error& error, HeadOptions options, bool without_body);
  void text(std::string& out, std::string_view body, HeadOptions options, bool without_body);

 private:
  void refresh();

  std::time_t second_ = 0;
  std::string date_;       // "Date: Mon, 30 Nov 2026 10:21:39 GMT\r\n"
  std::string call_head_;  // up to and with "Content-Length: "
};

// Header lines of an error that are not in every answer (WWW-Authenticate).
std::string error_headers(const Error& error);

}  // namespace http
