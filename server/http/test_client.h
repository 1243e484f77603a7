// A plain socket with just enough HTTP to test a server: what is sent is under the test's full control. Test code only.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace http::test {

struct Response {
  int status = 0;
  std::string head;  // status line and header lines
  std::string body;
  std::vector<std::string> chunks;  // when it was chunked
  // Value of a header; "" when it is not there.
  std::string header(std::string_view name) const;
};

class Client {
 public:
  explicit Client(const std::string& url);  // http://127.0.0.1:1234, http://[::1]:1234 or unix://path
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(std::string_view bytes);
  void shut_down();  // no more will be sent
  void close();
  void post(std::string_view path, std::string_view body, std::string_view headers = {});
  void get(std::string_view path);

  // All wait for ten seconds at most; a test that waits so long has failed.
  std::optional<Response> response(bool without_body = false);
  std::optional<Response> head();      // only the head; the body stays
  std::optional<std::string> chunk();  // the next one of a chunked body; "" is the last
  std::optional<std::string> text(size_t size);
  // What arrives next, within `wait`; "" is the end.
  std::optional<std::string> some(std::chrono::milliseconds wait);
  bool closed();  // by the other side: end or reset, after whatever is still unread
  // Whether nothing arrives for so long.
  bool quiet(std::chrono::milliseconds time);

 private:
  bool receive(std::chrono::milliseconds wait);
  std::optional<std::string> until(std::string_view mark);

  int socket_ = -1;
  bool ended_ = false;
  std::string_view unread() const { return std::string_view(in_).substr(at_); }
  std::string take(size_t size);

  std::string in_;
  size_t at_ = 0;  // taken of in_
};

}  // namespace http::test
