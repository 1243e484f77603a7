// A member's connections. Each is a client of cpprestsdk of its own, used by one request at a time: the only way to
// know how long a connection was idle.
#include <cpprest/http_client.h>
#include <pplx/threadpool.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "clock.h"
#include "http/exchange.h"
#include "http/transport.h"
#include "thread.h"

namespace conclave::inline v1::internal {

namespace {

using web::http::client::http_client;
using web::http::client::http_client_config;

constexpr std::chrono::seconds kIdleForWritesMax{10};
constexpr std::chrono::seconds kIdleMax{25};  // cpprestsdk drops its own after 30 s to 60 s
constexpr std::size_t kIdleConnectionsMax = 16;
constexpr std::size_t kTransportThreads = 4;
// cpprestsdk's limit for each single read. Deadlines are ours; this one only must not come first.
constexpr std::chrono::hours kReadTimeout{24};

// One pool for the process. Whoever sets it twice is thrown at: then somebody has set it, and that is fine.
void set_up_threads() {
  static std::once_flag once;
  std::call_once(once, [] {
    SignalsBlocked blocked;
    try {
      crossplat::threadpool::initialize_with_threads(kTransportThreads);
    } catch (const std::exception&) {
    }
  });
}

// cpprestsdk calls this with its asio socket before each request. It cannot tell itself whether a pooled connection
// still stands; a look into the receive buffer can: an idle one has nothing to read.
void refuse_stale(web::http::client::native_handle handle) {
  auto* socket = static_cast<boost::asio::ip::tcp::socket*>(handle);
  if (!socket->is_open()) return;
  char byte = 0;
  const auto n = ::recv(socket->native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) throw StaleConnection();
}

class HttpMember : public Member, public std::enable_shared_from_this<HttpMember> {
 public:
  explicit HttpMember(std::string url) : url_(std::move(url)) { set_up_threads(); }

  std::shared_ptr<Exchange> post(const std::string& path, std::string body, bool fresh, HttpDone done) override {
    auto exchange =
        std::make_shared<HttpExchange>(StreamRequest{.path = path, .head = std::move(body)}, nullptr, std::move(done));
    run(exchange, fresh);
    return exchange;
  }

  std::shared_ptr<Stream> stream(StreamRequest request, StreamData data, HttpDone done) override {
    auto exchange = std::make_shared<HttpExchange>(std::move(request), std::move(data), std::move(done));
    auto client = connect();
    exchange->start(*client, [client](HttpExchange::Connection) {});
    return exchange;
  }

 private:
  void run(const std::shared_ptr<HttpExchange>& exchange, bool fresh) {
    std::shared_ptr<http_client> client = acquire(fresh);
    exchange->start(*client, [self = shared_from_this(), client, exchange, fresh](HttpExchange::Connection after) {
      if (after == HttpExchange::Connection::kReusable) return self->release(client);
      if (after != HttpExchange::Connection::kStale) return;
      self->forget_idle();  // it closed this one, so most likely all
      self->run(exchange, fresh);
    });
  }

  struct Idle {
    std::shared_ptr<http_client> client;
    TimePoint since;
  };

  std::shared_ptr<http_client> connect() const {
    http_client_config config;
    config.set_timeout(kReadTimeout);
    config.set_max_redirects(0);
    config.set_nativehandle_options(&refuse_stale);
    return std::make_shared<http_client>(url_, config);
  }

  std::shared_ptr<http_client> acquire(bool fresh) {
    std::vector<Idle> dropped;  // closed after the mutex is free
    const auto oldest = BootClock::now() - (fresh ? kIdleForWritesMax : kIdleMax);
    std::unique_lock lock(mutex_);
    if (!idle_.empty() && idle_.back().since >= oldest) {
      auto client = std::move(idle_.back().client);
      idle_.pop_back();
      return client;
    }
    dropped.swap(idle_);  // the newest is too old, so all are
    lock.unlock();
    return connect();
  }

  void forget_idle() {
    std::vector<Idle> dropped;
    std::scoped_lock lock(mutex_);
    dropped.swap(idle_);
  }

  void release(std::shared_ptr<http_client> client) {
    std::scoped_lock lock(mutex_);
    if (idle_.size() < kIdleConnectionsMax) idle_.push_back({std::move(client), BootClock::now()});
  }

  const std::string url_;
  std::mutex mutex_;
  std::vector<Idle> idle_;  // the newest last
};

}  // namespace

std::shared_ptr<Member> make_member(const std::string& url) { return std::make_shared<HttpMember>(url); }

bool valid_endpoint(const std::string& url) {
  if (!web::uri::validate(url)) return false;
  const web::uri uri(url);
  const bool web = uri.scheme() == "http" || uri.scheme() == "https";
  return web && !uri.host().empty() && uri.user_info().empty() && uri.is_path_empty() && uri.query().empty() &&
         uri.fragment().empty() && uri.port() >= -1 && uri.port() <= 65535;
}

}  // namespace conclave::inline v1::internal
