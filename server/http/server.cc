#include "http/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/log.h"
#include "http/io_thread.h"
#include "http/listener.h"

namespace http {
namespace {

namespace asio = boost::asio;

// One thread's. Clients that keep coming would fill the log with the same line.
class LogLimit {
 public:
  bool due() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return false;
    next_ = now + kLogPeriod;
    return true;
  }

 private:
  std::chrono::steady_clock::time_point next_{};
};

// A listening socket at work, on the first io thread.
class Acceptor {
 public:
  using Take = std::function<void(int socket, bool tcp)>;
  Acceptor(asio::io_context& context, Bound bound, Take take)
      : bound_(std::move(bound)), socket_(context, bound_.socket), pause_(context), take_(std::move(take)) {}
  ~Acceptor() {
    if (!bound_.unix_path.empty()) ::unlink(bound_.unix_path.c_str());
  }

  void wait() {
    socket_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
      if (!error) accept();
    });
  }
  void close() {
    boost::system::error_code ignored;
    socket_.close(ignored);
    pause_.cancel();
  }
  const std::string& url() const { return bound_.url; }

 private:
  void accept() {
    for (size_t i = 0; i < kAcceptsAtOnce; ++i) {
      const int socket = ::accept4(socket_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (socket >= 0) {
        take_(socket, bound_.tcp);
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        const char* why = std::strerror(errno);
        if (log_limit_.due()) {
          log_warn("cannot accept a client's connection; trying again soon", {{"url", bound_.url}, {"error", why}});
        }
        pause_.expires_after(kAcceptPause);
        pause_.async_wait([this](const boost::system::error_code& error) {
          if (!error) wait();
        });
        return;
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        break;
      }  // else that one connection is gone already
    }
    wait();
  }

  const Bound bound_;
  asio::posix::stream_descriptor socket_;
  asio::steady_timer pause_;
  const Take take_;
  LogLimit log_limit_;
};

}  // namespace

class Server::Impl {
 public:
  Impl(const Router& router, ServerOptions options) : shared_(router, std::move(options)) {
    CHECK(shared_.options.io_threads > 0);
    for (size_t i = 0; i < shared_.options.io_threads; ++i) {
      threads_.push_back(std::make_unique<IoThread>(shared_, i));
    }
  }

  Status listen(const std::vector<std::string>& urls) {
    CHECK(!started_, "listen() comes before start()");
    std::vector<Bound> all;
    for (const std::string& url : urls) {
      auto bound = bind_url(url);
      if (!bound) {
        for (const Bound& one : all) {
          ::close(one.socket);
          if (!one.unix_path.empty()) ::unlink(one.unix_path.c_str());
        }
        return fail(std::move(bound.error()));
      }
      for (Bound& one : *bound) all.push_back(std::move(one));
    }
    for (Bound& one : all) {
      acceptors_.push_back(std::make_unique<Acceptor>(threads_[0]->context(), std::move(one),
                                                      [this](int socket, bool tcp) { take(socket, tcp); }));
    }
    return {};
  }

  std::vector<std::string> urls() const {
    std::vector<std::string> urls;
    for (const auto& acceptor : acceptors_) urls.push_back(acceptor->url());
    return urls;
  }

  void start() {
    CHECK(!started_);
    started_ = true;
    for (const auto& acceptor : acceptors_) acceptor->wait();
    for (const auto& thread : threads_) thread->start();
  }

  void adopt(int socket) {
    // Closed with the call, if that never runs.
    auto owner = std::make_shared<asio::posix::stream_descriptor>(threads_[0]->context(), socket);
    asio::post(threads_[0]->context(), [this, owner] {
      if (shared_.accepting.load()) take(owner->release(), true);
    });
  }

  void stop(std::chrono::milliseconds patience) {
    if (stopped_) return;
    stopped_ = true;
    if (started_) {
      asio::post(threads_[0]->context(), [this] {
        for (const auto& acceptor : acceptors_) acceptor->close();
        // Behind this on every thread: connections accepted before are there by then.
        for (const auto& thread : threads_) thread->begin_stop();
        shared_.accepting.store(false);
        MutexLock lock(shared_.mutex);
        shared_.drained.notify_all();
      });
      wait_drained(std::chrono::steady_clock::now() + patience);
    }
    for (const auto& thread : threads_) thread->join();
    acceptors_.clear();
  }

  Counters counters() const {
    return {.connections_accepted = shared_.connections_accepted.load(),
            .connections_refused = shared_.connections_refused.load(),
            .connections_open = shared_.connections_open.load(),
            .streams_open = shared_.streams_open.load(),
            .requests = shared_.requests.load(),
            .requests_refused = shared_.requests_refused.load(),
            .requests_bytes = shared_.requests_bytes.load(),
            .bytes_received = shared_.bytes_received.load(),
            .bytes_sent = shared_.bytes_sent.load()};
  }

 private:
  void wait_drained(std::chrono::steady_clock::time_point until) {
    MutexLock lock(shared_.mutex);
    for (;;) {
      const auto left = until - std::chrono::steady_clock::now();
      if (left <= left.zero() || (shared_.connections_open.load() == 0 && !shared_.accepting.load())) return;
      shared_.drained.wait_for(shared_.mutex, left);
    }
  }

  // First io thread.
  void take(int socket, bool tcp) {
    shared_.connections_accepted.fetch_add(1);
    if (shared_.connections_open.fetch_add(1) >= shared_.options.limits.connections_max) {
      shared_.connections_open.fetch_sub(1);
      shared_.connections_refused.fetch_add(1);
      ::close(socket);
      if (refused_log_limit_.due()) {
        log_warn("a connection is closed at once: there are as many as the limit of open files leaves room for",
                 {{"connections_max", shared_.options.limits.connections_max}});
      }
      return;
    }
    IoThread& thread = *threads_[next_++ % threads_.size()];
    auto peer = peer_of(socket, tcp);
    if (IoThread::current() == &thread) {
      thread.adopt(socket, std::move(peer), tcp);
    } else {
      asio::post(thread.context(), [&thread, socket, peer = std::move(peer), tcp] { thread.adopt(socket, peer, tcp); });
    }
  }

  Shared shared_;
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  size_t next_ = 0;
  LogLimit refused_log_limit_;  // first io thread
  bool started_ = false;
  bool stopped_ = false;
};

Server::Server(const Router& router, ServerOptions options)
    : impl_(std::make_unique<Impl>(router, std::move(options))) {}
Server::~Server() { impl_->stop(std::chrono::milliseconds(0)); }
Status Server::listen(const std::vector<std::string>& urls) { return impl_->listen(urls); }
std::vector<std::string> Server::urls() const { return impl_->urls(); }
void Server::start() { impl_->start(); }
void Server::adopt(int socket) { impl_->adopt(socket); }
void Server::stop(std::chrono::milliseconds patience) { impl_->stop(patience); }
Server::Counters Server::counters() const { return impl_->counters(); }

}  // namespace http
