#include "http/test_client.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace http::test {
namespace {

constexpr std::chrono::milliseconds kPatience{10'000};

bool same_letters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

std::string Response::header(std::string_view name) const {
  for (size_t at = head.find("\r\n"); at != std::string::npos && at + 2 < head.size(); at = head.find("\r\n", at + 2)) {
    const size_t colon = head.find(':', at + 2);
    if (colon == std::string::npos) break;
    if (!same_letters(std::string_view(head).substr(at + 2, colon - at - 2), name)) continue;
    const size_t from = head.find_first_not_of(' ', colon + 1);
    return head.substr(from, head.find("\r\n", from) - from);
  }
  return {};
}

Client::Client(const std::string& url) {
  if (url.starts_with("unix://")) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, url.data() + 7, url.size() - 7);
    socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0, url, std::strerror(errno));
    return;
  }
  const size_t colon = url.rfind(':');
  std::string host = url.substr(7, colon - 7);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  CHECK(::getaddrinfo(host.c_str(), url.substr(colon + 1).c_str(), &hints, &found) == 0, url);
  socket_ = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(::connect(socket_, found->ai_addr, found->ai_addrlen) == 0, url, std::strerror(errno));
  ::freeaddrinfo(found);
}

Client::~Client() { close(); }

void Client::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void Client::shut_down() { ::shutdown(socket_, SHUT_WR); }

void Client::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the server has hung up; the test sees it when it reads
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

void Client::post(std::string_view path, std::string_view body, std::string_view headers) {
  std::string request = "POST " + std::string(path) + " HTTP/1.1\r\nHost: test\r\nContent-Length: ";
  request.append(std::to_string(body.size())).append("\r\n").append(headers).append("\r\n").append(body);
  send(request);
}

void Client::get(std::string_view path) { send("GET " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n\r\n"); }

bool Client::receive(std::chrono::milliseconds wait) {
  if (ended_) return false;
  pollfd ready{socket_, POLLIN, 0};
  if (::poll(&ready, 1, static_cast<int>(wait.count())) <= 0) return false;
  char buffer[65536];
  const ssize_t size = ::recv(socket_, buffer, sizeof(buffer), 0);
  if (size <= 0) {
    ended_ = true;
    return false;
  }
  in_.erase(0, std::exchange(at_, 0));
  in_.append(buffer, static_cast<size_t>(size));
  return true;
}

std::string Client::take(size_t size) {
  std::string taken(unread().substr(0, size));
  at_ += taken.size();
  return taken;
}

std::optional<std::string> Client::until(std::string_view mark) {
  size_t at;
  while ((at = unread().find(mark)) == std::string::npos) {
    if (!receive(kPatience)) return std::nullopt;
  }
  return take(at + mark.size());
}

std::optional<std::string> Client::text(size_t size) {
  while (unread().size() < size) {
    if (!receive(kPatience)) return std::nullopt;
  }
  return take(size);
}

std::optional<Response> Client::head() {
  auto text = until("\r\n\r\n");
  if (!text || text->size() < 12) return std::nullopt;
  Response response;
  response.status = std::atoi(text->c_str() + 9);
  response.head = std::move(*text);
  return response;
}

std::optional<std::string> Client::chunk() {
  const auto line = until("\r\n");
  if (!line) return std::nullopt;
  const size_t size = std::strtoul(line->c_str(), nullptr, 16);
  auto data = text(size);
  if (!data || text(2) != "\r\n") return std::nullopt;
  return data;
}

std::optional<Response> Client::response(bool without_body) {
  auto response = head();
  if (!response || without_body) return response;
  if (response->header("Transfer-Encoding") == "chunked") {
    for (;;) {
      auto data = chunk();
      if (!data) return std::nullopt;
      if (data->empty()) return response;
      response->body += *data;
      response->chunks.push_back(std::move(*data));
    }
  }
  if (const std::string length = response->header("Content-Length"); !length.empty()) {
    auto body = text(std::stoul(length));
    if (!body) return std::nullopt;
    response->body = std::move(*body);
  } else {
    while (receive(kPatience)) {
    }
    response->body = take(unread().size());
  }
  return response;
}

std::optional<std::string> Client::some(std::chrono::milliseconds wait) {
  if (unread().empty() && !receive(wait) && !ended_) return std::nullopt;
  return take(unread().size());
}

bool Client::closed() {
  while (receive(kPatience)) {
  }
  return ended_;
}

bool Client::quiet(std::chrono::milliseconds time) { return unread().empty() && !receive(time) && !ended_; }

}  // namespace http::test
