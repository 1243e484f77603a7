// A TCP proxy for tests, whose connections can go dead without a word: what a lost route or a forgotten NAT entry does.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace conclave::testing {

class TestProxy {
 public:
  explicit TestProxy(std::uint16_t to);
  ~TestProxy();
  TestProxy(const TestProxy&) = delete;
  TestProxy& operator=(const TestProxy&) = delete;

  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // The connections there are stay open and carry nothing any more.
  void kill_connections_silently();
  void black_hole(bool on) { black_hole_ = on; }    // new connections are accepted and carry nothing
  int connections() const { return connections_; }  // ever accepted

 private:
  struct Pair {
    int client;
    int server;
    bool dead;
  };
  void run();
  static bool forward(int from, int to);

  const std::uint16_t to_;
  std::uint16_t port_ = 0;
  int listener_ = -1;
  std::atomic<bool> stop_{false};
  std::atomic<bool> black_hole_{false};
  std::atomic<int> connections_{0};
  std::mutex mutex_;
  std::vector<Pair> pairs_;
  std::thread thread_;
};

}  // namespace conclave::testing
