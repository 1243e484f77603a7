#include "http/io_thread.h"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "base/check.h"
#include "http/connection.h"
#include "http/http1_connection.h"
#include "http/stream.h"

namespace http {
namespace {

namespace asio = boost::asio;

// Handlers of one pass; a few more than calls, as timers and letters are among them.
constexpr size_t kHandlersMax = 2 * kBatchCallsMax;

}  // namespace

thread_local IoThread* IoThread::current_ = nullptr;

// The hint says that only this thread runs handlers and touches sockets; posting from others stays safe.
IoThread::IoThread(Shared& shared, size_t index)
    : shared_(shared),
      index_(index),
      context_(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO),
      work_(context_.get_executor()),
      sweep_timer_(context_),
      inbox_(std::make_shared<Inbox>([this] { asio::post(context_, [this] { read_letters(); }); })),
      read_buffer_(std::make_unique<char[]>(kReadBytes)),
      now_(Clock::now()) {}

IoThread::~IoThread() { CHECK(!thread_.joinable(), "join() first"); }

void IoThread::start() {
  CHECK(!thread_.joinable());
  thread_ = std::thread([this] { run(); });
}

void IoThread::begin_stop() {
  asio::post(context_, [this] {
    stopping_ = true;
    const auto open = connections_;
    for (const auto& connection : open) connection->begin_stop();
  });
}

void IoThread::join() {
  inbox_->close();
  const auto close_all = [this] {
    const auto open = connections_;
    for (const auto& connection : open) connection->abort();
    sweep_timer_.cancel();
    ended_ = true;
  };
  if (thread_.joinable()) {
    asio::post(context_, close_all);
    thread_.join();
  } else {
    close_all();
  }
}

void IoThread::run() {
  begin_thread(("http-io-" + std::to_string(index_)).c_str());
  while (!ended_) run_pass(/*wait=*/true);
}

// Calls that are left from the pass before do not keep sockets from being looked at: all wait in one line.
bool IoThread::run_pass(bool wait) {
  IoThread* const outer = std::exchange(current_, this);
  const bool any = wait ? context_.run_one() > 0 : context_.poll_one() > 0;
  ++pass_;
  now_ = Clock::now();
  const size_t calls_max = ready_.size() + kBatchCallsMax;
  for (size_t i = 1; i < kHandlersMax && ready_.size() < calls_max && context_.poll_one() > 0; ++i) {
  }
  std::vector<std::shared_ptr<Connection>> again;
  again.swap(later_);
  for (const auto& connection : again) connection->begin_pass();
  settle();
  current_ = outer;
  return any;
}

void IoThread::read_letters() {
  inbox_->take(letters_);
  for (Letter& letter : letters_) {
    if (letter.stream != nullptr) {
      woken_.push_back(std::move(letter.stream));
    } else {
      letter.connection->receive(letter);
    }
  }
  letters_.clear();
}

void IoThread::next_pass(std::shared_ptr<Connection> connection) {
  if (later_.empty()) asio::post(context_, [] {});  // it begins at once
  later_.push_back(std::move(connection));
}

// Rounds of calls, streams and writes that feed each other. One call of each connection a round.
void IoThread::settle() {
  for (int round = 0; !ready_.empty() || !woken_.empty() || !unsettled_.empty(); ++round) {
    if (round == kPassCallsMax) {
      asio::post(context_, [] {});  // the next pass begins at once
      return;
    }
    run_calls();
    pulling_.swap(woken_);
    for (const auto& stream : pulling_) stream->pump();
    pulling_.clear();
    settling_.swap(unsettled_);
    for (const auto& connection : settling_) connection->settle();
    settling_.clear();
  }
}

void IoThread::run_calls() {
  if (ready_.empty()) return;
  const BatchHooks& hooks = shared_.options.hooks;
  if (hooks.begin) hooks.begin(index_);
  // A handler never adds to `ready_`: the next requests of a connection are read when the answers are settled.
  for (const auto& connection : ready_) connection->run_calls();
  ready_.clear();
  if (hooks.end) hooks.end(index_);
}

void IoThread::adopt(int socket, std::shared_ptr<const Peer> peer, bool tcp) {
  Connection::Socket owned(context_, socket);
  add(std::make_shared<Http1Connection>(*this, std::move(owned), std::move(peer), tcp));
}

void IoThread::add(const std::shared_ptr<Connection>& connection) {
  connection->set_slot(connections_.size());
  connections_.push_back(connection);
  connection->start();
  arm_sweep();
}

void IoThread::replace(Connection& connection, std::shared_ptr<Connection> by) {
  CHECK(connections_[connection.slot()].get() == &connection);
  by->set_slot(connection.slot());
  connections_[connection.slot()] = std::move(by);
}

void IoThread::forget(Connection& connection) {
  const size_t slot = connection.slot();
  CHECK(slot < connections_.size() && connections_[slot].get() == &connection);
  std::swap(connections_[slot], connections_.back());
  connections_[slot]->set_slot(slot);
  connections_.pop_back();
  if (shared_.connections_open.fetch_sub(1) == 1) {
    MutexLock lock(shared_.mutex);
    shared_.drained.notify_all();
  }
}

// Timeouts are coarse, so that ten thousand idle connections cost nothing: all are looked at once in a while.
void IoThread::arm_sweep() {
  if (sweep_armed_ || connections_.empty() || ended_) return;
  sweep_armed_ = true;
  const Limits& l = limits();
  const auto shortest =
      std::min({l.head_timeout, l.idle_timeout, l.write_timeout, l.body_progress_period, kLingerTimeout});
  sweep_timer_.expires_after(std::clamp(shortest / 4, std::chrono::milliseconds(5), std::chrono::milliseconds(1000)));
  sweep_timer_.async_wait([this](const boost::system::error_code& error) {
    sweep_armed_ = false;
    if (!error) sweep();
  });
}

void IoThread::sweep() {
  const auto now = Clock::now();
  const auto open = connections_;
  for (const auto& connection : open) connection->sweep(now);
  arm_sweep();
}

}  // namespace http
