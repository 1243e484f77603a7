#include "conclave/shutdown.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "thread.h"

namespace conclave {
inline namespace v1 {

class ShutdownSignal::Impl {
 public:
  Impl() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    signal_fd_ = ::signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK);
    end_fd_ = ::eventfd(0, EFD_CLOEXEC);
    thread_ = internal::start_thread("conclave-signal", [this] { run(); });
  }
  ~Impl() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(end_fd_, &one, sizeof one);
    internal::join_or_detach(thread_);
    ::close(signal_fd_);
    ::close(end_fd_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  int signal() const { return signal_; }
  void wait() {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [this] { return signal_ != 0; });
  }

 private:
  void run() {
    while (true) {
      pollfd fds[2] = {{signal_fd_, POLLIN, 0}, {end_fd_, POLLIN, 0}};
      ::poll(fds, 2, -1);
      if (fds[1].revents != 0) return;
      signalfd_siginfo info{};
      if (::read(signal_fd_, &info, sizeof info) != sizeof info) continue;
      {
        std::scoped_lock lock(mutex_);
        signal_ = static_cast<int>(info.ssi_signo);
        came_.notify_all();
      }
      source_.request_stop();
    }
  }

  sigset_t signals_{};
  sigset_t before_{};
  int signal_fd_ = -1;
  int end_fd_ = -1;
  std::stop_source source_;
  std::atomic<int> signal_{0};
  std::mutex mutex_;
  std::condition_variable came_;
  std::thread thread_;
};

ShutdownSignal::ShutdownSignal() : impl_(std::make_unique<Impl>()) {}
ShutdownSignal::~ShutdownSignal() = default;
std::stop_token ShutdownSignal::token() const { return impl_->token(); }
void ShutdownSignal::wait() const { impl_->wait(); }
int ShutdownSignal::signal() const { return impl_->signal(); }

}  // namespace v1
}  // namespace conclave
