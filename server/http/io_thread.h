// One thread with its connections. Each round it takes what is ready (sockets, letters of other threads), then runs the
// calls that became complete between two BatchHooks, then the streams that were woken, then writes what there is to
// write: one system call a connection, however many answers it has.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/thread.h"
#include "http/inbox.h"
#include "http/limits.h"
#include "http/response.h"
#include "http/server.h"

namespace http {

// What all io threads of a server share. Read-only but for the counters.
struct Shared {
  Shared(const Router& the_router, ServerOptions the_options) : router(the_router), options(std::move(the_options)) {}

  const Router& router;
  ServerOptions options;
  std::atomic<uint64_t> connections_accepted{0};
  std::atomic<uint64_t> connections_refused{0};
  std::atomic<uint64_t> connections_open{0};
  std::atomic<uint64_t> streams_open{0};
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> bytes_received{0};
  std::atomic<uint64_t> bytes_sent{0};
  std::atomic<uint64_t> requests_refused{0};  // over limits.requests_bytes_max
  std::atomic<size_t> requests_bytes{0};      // kept of requests; see limits.requests_bytes_max
  // Requests already take as much memory as they may.
  bool crowded() const { return requests_bytes.load(std::memory_order_relaxed) > options.limits.requests_bytes_max; }
  std::atomic<bool> accepting{true};
  Mutex mutex;
  Condition drained;  // connections_open may have become 0, accepting false
};

class IoThread {
 public:
  using Clock = std::chrono::steady_clock;

  IoThread(Shared& shared, size_t index);
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  // Owner's thread.
  void start();
  void begin_stop();  // no new requests; what is idle is closed, streams are ended
  void join();        // closes every connection that is left

  // Any thread.
  boost::asio::io_context& context() { return context_; }
  const std::shared_ptr<Inbox>& inbox() const { return inbox_; }
  static IoThread* current() { return current_; }  // of the calling thread; null: it is not an io thread

  // Io thread only, from here on.
  void adopt(int socket, std::shared_ptr<const Peer> peer, bool tcp);
  void add(const std::shared_ptr<Connection>& connection);
  void replace(Connection& connection, std::shared_ptr<Connection> by);  // `by` goes on with its client
  void forget(Connection& connection);
  void call_ready(std::shared_ptr<Connection> connection) { ready_.push_back(std::move(connection)); }
  void woken(std::shared_ptr<Stream> stream) { woken_.push_back(std::move(stream)); }
  void unsettled(std::shared_ptr<Connection> connection) { unsettled_.push_back(std::move(connection)); }
  // It has had its share of this pass: settled again in the next one, which looks at all sockets before.
  void next_pass(std::shared_ptr<Connection> connection);
  uint64_t pass() const { return pass_; }

  Shared& shared() { return shared_; }
  const Limits& limits() const { return shared_.options.limits; }
  size_t index() const { return index_; }
  bool stopping() const { return stopping_; }
  Clock::time_point now() const { return now_; }  // of this pass
  Responses& responses() { return responses_; }
  char* read_buffer() { return read_buffer_.get(); }
  std::string& scratch() { return scratch_; }  // for one message being encoded

  // One pass: waits for something to happen unless `wait` is false; false: nothing has. For the thread and for
  // fuzzing.
  bool run_pass(bool wait);

 private:
  void run();
  void read_letters();
  void settle();
  void run_calls();
  void sweep();
  void arm_sweep();

  Shared& shared_;
  const size_t index_;
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;  // it never runs dry
  boost::asio::steady_timer sweep_timer_;
  bool sweep_armed_ = false;
  std::shared_ptr<Inbox> inbox_;
  std::vector<Letter> letters_;
  std::vector<std::shared_ptr<Connection>> connections_;
  std::vector<std::shared_ptr<Connection>> ready_;      // with a complete call
  std::vector<std::shared_ptr<Stream>> woken_;          // to be pulled
  std::vector<std::shared_ptr<Connection>> unsettled_;  // to be written and read on
  std::vector<std::shared_ptr<Stream>> pulling_;        // the two above, while a round works on them
  std::vector<std::shared_ptr<Connection>> settling_;
  std::vector<std::shared_ptr<Connection>> later_;  // for the next pass
  uint64_t pass_ = 0;
  std::unique_ptr<char[]> read_buffer_;
  std::string scratch_;
  Responses responses_;
  Clock::time_point now_;
  bool stopping_ = false;
  bool ended_ = false;
  std::thread thread_;
  static thread_local IoThread* current_;
};

}  // namespace http
