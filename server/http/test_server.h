// A server with the test service on a loopback port, and ways to ask it. Test code only.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http/server.h"
#include "http/test_service.h"

namespace http::test {

class ServerTest : public testing::Test {
 protected:
  void start(ServerOptions options = {}, std::vector<std::string> urls = {"http://127.0.0.1:0"}) {
    server_ = std::make_unique<Server>(service_.router, std::move(options));
    const Status listening = server_->listen(urls);
    ASSERT_TRUE(listening) << listening.error().message;
    server_->start();
    url_ = server_->urls()[0];
  }
  Response ask(std::string_view raw) {
    Client client(url_);
    client.send(raw);
    auto response = client.response();
    EXPECT_TRUE(response) << raw.substr(0, 200);
    return response.value_or(Response());
  }
  Response post(std::string_view path, std::string_view body, std::string_view headers = {}) {
    Client client(url_);
    client.post(path, body, headers);
    auto response = client.response();
    EXPECT_TRUE(response) << path << " " << body.substr(0, 200);
    return response.value_or(Response());
  }
  // The server still works.
  void expect_healthy() { EXPECT_EQ(post("/v3/kv/range", R"({"key":"YQ=="})").body, R"({"kvs":[{"key":"YQ=="}]})"); }

  // Before the members of a derived fixture go: the server's thread may still be letting go of what it sent.
  void TearDown() override { server_.reset(); }

  Service service_;
  std::unique_ptr<Server> server_;
  std::string url_;
};

}  // namespace http::test
