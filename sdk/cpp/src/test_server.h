// A server program for tests: started on free ports of 127.0.0.1 with a temporary data folder, killed, restarted on the
// same ports and data, paused. Any program with etcd's flags: CONCLAVE_TEST_SERVER, else the one that was built.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "conclave/client.h"

namespace conclave::testing {

class TestServer {
 public:
  TestServer();   // running and healthy; ends the test program with a clear message if that fails
  ~TestServer();  // killed, its data removed
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  const std::string& endpoint() const { return endpoint_; }
  std::uint16_t port() const { return port_; }
  ClientOptions options() const { return {.endpoints = {endpoint_}}; }
  Client client() const;

  void kill();    // SIGKILL, and waits for its end
  void start();   // again, with the data it had; waits until it is healthy
  void pause();   // SIGSTOP
  void resume();  // SIGCONT

 private:
  void spawn();
  void wait_healthy() const;

  std::string program_;
  std::string folder_;
  std::string endpoint_;
  std::string peer_;
  std::uint16_t port_ = 0;
  pid_t process_ = -1;
};

std::uint16_t free_port();

}  // namespace conclave::testing
