// The head of an HTTP/1.x request and the parser (Beast's, without its containers) that fills it in. What the front end
// does not need of a request is never stored.
#pragma once

#include <boost/beast/http/basic_parser.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "http/limits.h"

namespace http {

struct RequestHead {
  std::string method;
  std::string target;
  std::string token;         // Grpc-Metadata-Token, else Authorization; without "Bearer "
  std::string grpc_timeout;  // Grpc-Timeout
  bool has_grpc_timeout = false;
  bool has_host = false;
  bool expects_continue = false;
  bool expects_other = false;
  bool foreign_encoding = false;  // a Transfer-Encoding other than "chunked"
  bool grpc_token = false;

  void clear();
};

// Parses the head of one request. Bytes are not copied, except for what is kept in `head`.
class RequestParser : private boost::beast::http::basic_parser<true> {
  using Base = boost::beast::http::basic_parser<true>;

 public:
  explicit RequestParser(RequestHead& head);

  enum class Result { kDone, kMore, kBad, kHeadTooLarge };
  // Eats from `in` until the head is complete (kDone), more is needed (kMore), or it makes no sense.
  Result parse_head(std::string_view& in);

  // After the head.
  bool http_1_1() const { return version_ >= 11; }
  bool wants_keep_alive() const { return keep_alive(); }
  bool is_chunked() const { return chunked(); }
  std::optional<uint64_t> declared_length() const;

 private:
  using string_view = boost::beast::string_view;
  using error_code = boost::beast::error_code;
  using verb = boost::beast::http::verb;
  using field = boost::beast::http::field;

  void on_request_impl(verb, string_view method, string_view target, int version, error_code&) override;
  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_field_impl(field name, string_view text, string_view value, error_code&) override;
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(boost::optional<std::uint64_t> const&, error_code&) override {}
  std::size_t on_body_impl(string_view data, error_code&) override { return data.size(); }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view data, error_code&) override { return data.size(); }
  void on_finish_impl(error_code&) override {}

  RequestHead& head_;
  int version_ = 11;
  size_t head_bytes_ = 0;
};

}  // namespace http
