#include "peer/test_peer.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "peer/address.h"

namespace peer {
namespace {

sockaddr_in address_of(const std::string& url) {
  const auto address = parse_url(url);
  CHECK(address.has_value(), url);
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(static_cast<uint16_t>(std::stoi(address->port)));
  CHECK(inet_pton(AF_INET, address->host.c_str(), &out.sin_addr) == 1, url);
  return out;
}

int connect_to(const std::string& url) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = address_of(url);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return socket;
  ::close(socket);
  return -1;
}

}  // namespace

bool eventually(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// --- Recorder

void Recorder::on_frame(uint64_t from, Lane lane, Bytes frame) {
  {
    MutexLock lock(mutex_);
    got_.push_back({from, lane, std::move(frame)});
  }
  if (hook) hook();
}
void Recorder::on_unreachable(uint64_t peer) {
  MutexLock lock(mutex_);
  unreachable_.push_back(peer);
}
void Recorder::on_removed() {
  MutexLock lock(mutex_);
  ++removed_;
}
std::vector<Bytes> Recorder::frames(uint64_t from, Lane lane) {
  MutexLock lock(mutex_);
  std::vector<Bytes> found;
  for (const Got& one : got_) {
    if (one.from == from && one.lane == lane) found.push_back(one.frame);
  }
  return found;
}
size_t Recorder::count(uint64_t from, Lane lane) {
  MutexLock lock(mutex_);
  const auto is_it = [&](const Got& one) { return one.from == from && one.lane == lane; };
  return static_cast<size_t>(std::count_if(got_.begin(), got_.end(), is_it));
}
int Recorder::unreachable(uint64_t peer) {
  MutexLock lock(mutex_);
  return static_cast<int>(std::count(unreachable_.begin(), unreachable_.end(), peer));
}
void Recorder::on_other_folder() {
  MutexLock lock(mutex_);
  ++other_folder_;
}
int Recorder::other_folder() {
  MutexLock lock(mutex_);
  return other_folder_;
}
int Recorder::removed() {
  MutexLock lock(mutex_);
  return removed_;
}
int Recorder::calls() {
  MutexLock lock(mutex_);
  return static_cast<int>(got_.size() + unreachable_.size()) + removed_;
}

// --- Node

Node::Node(uint64_t id, const Change& change) : id_(id), change_(change) {
  auto listener = Listener::bind({"http://127.0.0.1:0"});
  CHECK(listener.has_value());
  url_ = (*listener)->urls()[0];
  make(std::move(*listener));
}

void Node::restart() {
  network_.reset();
  auto listener = Listener::bind({url_});
  CHECK(listener.has_value(), url_);
  make(std::move(*listener));
}

void Node::make(std::unique_ptr<Listener> listener) {
  registry_ = std::make_unique<metrics::Registry>();
  recorder_ = std::make_unique<Recorder>();
  Options options;
  options.cluster_id = kCluster;
  options.member_id = id_;
  options.listener = std::move(listener);
  if (change_) change_(options);
  network_ = make_network(std::move(options), *registry_);
  CHECK(network_->start(*recorder_).has_value());
}

bool Node::deliver(uint64_t to, Lane lane, const Bytes& frame) {
  return eventually([&] { return network_->send(to, lane, frame); });
}

// --- Proxy

struct Proxy::Pair {
  Pair(int dialer, int target) : sockets{dialer, target} {}
  std::array<int, 2> sockets;
  std::array<Bytes, 2> to_pass = {};  // read from each
  std::array<bool, 2> ended = {};
  Bytes hello = {};
  bool over = false;

  std::optional<Lane> lane() const {
    if (hello.size() <= kPreambleBytes + 1) return std::nullopt;
    return static_cast<Lane>(hello[kPreambleBytes + 1]);
  }
  ~Pair() {
    for (const int socket : sockets) ::close(socket);
  }
};

Proxy::Proxy(const std::string& target) : target_(target) {
  auto listener = Listener::bind({"http://127.0.0.1:0"});
  CHECK(listener.has_value());
  url_ = (*listener)->urls()[0];
  socket_ = (*listener)->release()[0];
  thread_ = std::thread([this] { run(); });
}

Proxy::~Proxy() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  thread_.join();
  ::close(socket_);
}

void Proxy::freeze(std::set<Lane> lanes) {
  MutexLock lock(mutex_);
  frozen_ = std::move(lanes);
}

int Proxy::connections() {
  MutexLock lock(mutex_);
  return connections_;
}

// Bytes at hand are written; only when all are gone, more are read: so a slow end is felt at the other.
void Proxy::pass(Pair& pair, int direction) {
  const auto from = static_cast<size_t>(direction);
  const auto to = 1 - from;
  Bytes& bytes = pair.to_pass[from];
  if (bytes.empty() && !pair.ended[from]) {
    char buffer[16 * 1024];
    const auto got = ::recv(pair.sockets[from], buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got > 0) bytes.assign(buffer, static_cast<size_t>(got));
    if (from == 0 && pair.hello.size() < kPreambleBytes + 2) pair.hello += bytes;
    pair.ended[from] = got == 0;
    if (got == 0) ::shutdown(pair.sockets[to], SHUT_WR);
    if (got < 0 && errno != EAGAIN) pair.over = true;
  }
  if (bytes.empty()) return;
  const auto put = ::send(pair.sockets[to], bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (put > 0) bytes.erase(0, static_cast<size_t>(put));
  if (put < 0 && errno != EAGAIN) pair.over = true;
}

void Proxy::run() {
  while (true) {
    std::set<Lane> frozen;
    {
      MutexLock lock(mutex_);
      if (stop_) break;
      frozen = frozen_;
    }
    const auto stuck = [&](const Pair& pair) { return pair.lane() && frozen.count(*pair.lane()) > 0; };
    std::vector<pollfd> wanted = {{socket_, POLLIN, 0}};
    for (const auto& pair : pairs_) {
      if (stuck(*pair)) continue;
      for (size_t i = 0; i < 2; ++i) {
        int events = 0;
        if (pair->to_pass[i].empty() && !pair->ended[i]) events |= POLLIN;
        if (!pair->to_pass[1 - i].empty()) events |= POLLOUT;
        if (events != 0) wanted.push_back({pair->sockets[i], static_cast<short>(events), 0});
      }
    }
    ::poll(wanted.data(), wanted.size(), 5);
    if (const int socket = ::accept(socket_, nullptr, nullptr); socket >= 0) {
      const int onward = connect_to(target_);
      if (onward < 0) {
        ::close(socket);
      } else {
        pairs_.push_back(std::make_unique<Pair>(socket, onward));
        MutexLock lock(mutex_);
        ++connections_;
      }
    }
    for (const auto& pair : pairs_) {
      for (int direction = 0; direction < 2; ++direction) {
        if (!stuck(*pair)) pass(*pair, direction);
      }
    }
    std::erase_if(pairs_, [](const auto& pair) { return pair->over || (pair->ended[0] && pair->ended[1]); });
  }
  pairs_.clear();
}

// --- Stranger

Stranger::Stranger(const std::string& url) : socket_(connect_to(url)) {
  CHECK(socket_ >= 0, url);
  const timeval patience{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
}
Stranger::~Stranger() {
  if (socket_ >= 0) ::close(socket_);
}
void Stranger::say(std::string_view bytes) { (void)::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
void Stranger::finish() { ::shutdown(socket_, SHUT_WR); }
Bytes Stranger::hear(size_t bytes) {
  Bytes heard(bytes, '\0');
  size_t have = 0;
  while (have < bytes) {
    const auto got = ::recv(socket_, heard.data() + have, bytes - have, 0);
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  heard.resize(have);
  return heard;
}
bool Stranger::closed() {
  char byte;
  const auto got = ::recv(socket_, &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}
std::optional<Answer> Stranger::answer() {
  const Bytes preamble = hear(kPreambleBytes);
  if (preamble.size() < kPreambleBytes) return std::nullopt;
  const auto parsed = parse_preamble(as_bytes(preamble), Side::kAnswer);
  if (!parsed) return std::nullopt;
  const Bytes body = hear(parsed->body_bytes);
  auto answer = parse_answer(as_bytes(preamble), as_bytes(body));
  if (!answer) return std::nullopt;
  return std::move(*answer);
}

}  // namespace peer
