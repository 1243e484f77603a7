#include "peer/network.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <thread>

#include "base/check.h"
#include "base/log.h"
#include "base/thread.h"
#include "peer/dial.h"
#include "peer/door.h"
#include "peer/link.h"

namespace peer {
namespace {

namespace asio = boost::asio;

class TcpNetwork final : public Network {
 public:
  TcpNetwork(Options options, metrics::Registry& metrics)
      : listener_(std::move(options.listener)),
        core_(std::move(options), metrics),
        door_(core_),
        work_(core_.io.get_executor()),
        tick_timer_(core_.io) {
    core_.on_life = [this](uint64_t peer) {
      for (const auto& link : lanes(peer)) link->dial_now();
    };
    core_.on_peer = [this](const Hello& hello) {
      if (hello.lane != Lane::kControl || hello.urls.empty()) return;
      for (const auto& link : lanes(hello.sender)) link->set_told(hello.urls);
    };
    core_.on_stranger = [this](const Hello& hello) { return introduce(hello); };
    core_.on_silence = [this](uint64_t peer) {
      for (const auto& link : lanes(peer)) link->break_off("its control connection shows no sign of life");
    };
  }
  ~TcpNetwork() override { stop(); }

  Status start(Receiver& receiver) override {
    CHECK(!thread_.joinable(), "started already");
    CHECK(core_.options.cluster_id != 0);
    CHECK(core_.options.member_id != 0);
    if (!listener_) {
      TRY_ASSIGN(listener_, Listener::bind(core_.options.listen_urls));
    }
    core_.receiver = &receiver;
    door_.open(listener_->release());
    last_tick_ = SteadyClock::now();
    arm_tick();
    thread_ = std::thread([this] {
      begin_thread("peer");
      hurry_thread();  // else the raft stage, which does, hears nobody on a busy machine and gives up its leadership
      core_.io.run();
    });
    return {};
  }

  void stop() override {
    if (!thread_.joinable()) return;
    CHECK(thread_.get_id() != std::this_thread::get_id(), "not from a callback");
    asio::post(core_.io, [this] { close_all(); });
    thread_.join();
  }

  void set_peers(std::vector<Peer> peers, std::vector<uint64_t> removed) override {
    std::map<uint64_t, std::vector<std::string>> wanted;
    std::map<uint64_t, uint64_t> folders;
    for (Peer& peer : peers) {
      if (peer.id == core_.options.member_id) continue;
      wanted[peer.id] = std::move(peer.urls);
      folders[peer.id] = peer.folder_id;
    }
    std::set<uint64_t> out(removed.begin(), removed.end());
    std::vector<Lanes> gone;
    MutexLock lock(mutex_);
    std::erase_if(introduced_, [&](const auto& one) { return wanted.count(one.first) + out.count(one.first) > 0; });
    wanted.insert(introduced_.begin(), introduced_.end());
    for (const auto& [id, urls] : introduced_) folders.emplace(id, 0);
    for (auto at = links_.begin(); at != links_.end();) {
      if (wanted.count(at->first) > 0) {
        ++at;
        continue;
      }
      gone.push_back(std::move(at->second));
      at = links_.erase(at);
    }
    std::vector<std::pair<Lanes, std::vector<std::string>>> here;
    for (auto& [id, urls] : wanted) here.emplace_back(lanes_to(id), std::move(urls));
    core_.roster.set(std::move(folders), std::move(out));
    // Posted under the lock, so that two calls take effect in one order everywhere.
    asio::post(core_.io, [this, gone = std::move(gone), here = std::move(here)] {
      for (const Lanes& lanes : gone) {
        for (const auto& link : lanes) link->close();  // also when close_all() has been: they were not in its list
      }
      if (closed_) return;
      for (const auto& [lanes, urls] : here) {
        for (const auto& link : lanes) link->set_urls(urls);
      }
      door_.expel();
    });
  }

  bool send(uint64_t to, Lane lane, Bytes frame) override {
    std::shared_ptr<Link> link;
    {
      MutexLock lock(mutex_);
      const auto found = links_.find(to);
      if (found == links_.end()) return false;
      link = found->second[static_cast<size_t>(lane)];
    }
    return link->push(std::move(frame));
  }

 private:
  using Lanes = std::array<std::shared_ptr<Link>, kLanes>;

  const Lanes& lanes_to(uint64_t id) REQUIRES(mutex_) {
    Lanes& lanes = links_[id];
    for (int i = 0; i < kLanes; ++i) {
      auto& link = lanes[static_cast<size_t>(i)];
      if (!link) link = std::make_shared<Link>(core_, id, static_cast<Lane>(i));
    }
    return lanes;
  }

  // Network thread only, from here on.

  // This member may lag behind the change that added the sender, and the sender may lead: then nobody else would ever
  // tell this member of that change. etcd does the same (rafthttp's AddRemote).
  bool introduce(const Hello& hello) EXCLUDES(mutex_) {
    if (hello.urls.empty() || hello.sender == 0 || hello.sender == core_.options.member_id) return false;
    Lanes lanes;
    {
      MutexLock lock(mutex_);
      if (introduced_.size() >= kIntroducedMax) make_room();
      if (introduced_.size() >= kIntroducedMax || !core_.roster.admit(hello.sender)) return false;
      introduced_[hello.sender] = hello.urls;
      lanes = lanes_to(hello.sender);
    }
    log_info("a member of this cluster of which this one has not heard yet introduces itself",
             {{"peer", id_text(hello.sender)}, {"url", hello.urls.front()}});
    for (const auto& link : lanes) link->set_urls(hello.urls);
    return true;
  }

  std::vector<std::shared_ptr<Link>> lanes(std::optional<uint64_t> peer = std::nullopt) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::vector<std::shared_ptr<Link>> found;
    for (const auto& [id, lanes] : links_) {
      if (!peer || id == *peer) found.insert(found.end(), lanes.begin(), lanes.end());
    }
    return found;
  }

  // One that has introduced itself and went away again.
  void make_room() REQUIRES(mutex_) {
    for (auto at = introduced_.begin(); at != introduced_.end(); ++at) {
      if (door_.has(at->first)) continue;
      for (const auto& link : links_[at->first]) link->close();
      links_.erase(at->first);
      core_.roster.dismiss(at->first);
      introduced_.erase(at);
      return;
    }
  }

  void arm_tick() {
    tick_timer_.expires_after(core_.timing.tick);
    tick_timer_.async_wait([this](const boost::system::error_code& error) {
      if (error || closed_) return;
      tick(SteadyClock::now());
      arm_tick();
    });
  }

  void tick(TimePoint now) {
    // A process that was stopped, or a machine that slept, would find everybody silent and hang up on all of them,
    // while their words lie unread in the sockets.
    const bool stood_still = now - last_tick_ > core_.options.election_timeout / 2;
    last_tick_ = now;
    for (const auto& link : lanes()) {
      if (stood_still) link->forgive(now);
      link->tick(now);
    }
    door_.tick(now);
  }

  void close_all() {
    closed_ = true;
    for (const auto& link : lanes()) link->close();
    door_.close();
    tick_timer_.cancel();
    work_.reset();
  }

  std::unique_ptr<Listener> listener_;
  Core core_;
  Door door_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::steady_timer tick_timer_;
  TimePoint last_tick_;
  bool closed_ = false;
  std::thread thread_;
  Mutex mutex_;
  std::map<uint64_t, Lanes> links_ GUARDED_BY(mutex_);
  std::map<uint64_t, std::vector<std::string>> introduced_ GUARDED_BY(mutex_);  // peers that are in no set_peers() yet
};

}  // namespace

std::unique_ptr<Network> make_network(Options options, metrics::Registry& metrics) {
  return std::make_unique<TcpNetwork>(std::move(options), metrics);
}

Result<Bytes> ask_cluster(const std::vector<std::string>& urls, std::chrono::milliseconds timeout) {
  Error last{Code::kUnavailable, "no URL to ask"};
  for (const std::string& url : urls) {
    asio::io_context io;
    Resolver resolver(io);
    Result<Bytes> found = fail(Code::kUnavailable, "not asked");
    const auto dial = Dial::start(io, resolver, {.url = url, .hello = {.kind = Hello::Kind::kAsk}, .timeout = timeout},
                                  [&](Result<Dialed> dialed) {
                                    if (!dialed) {
                                      found = fail(dialed.error());
                                    } else if (dialed->answer.verdict != Verdict::kAccepted) {
                                      found = fail(Code::kUnavailable, "refused: " + dialed->answer.text);
                                    } else if (dialed->answer.text.empty()) {
                                      found = fail(Code::kUnavailable, "it cannot tell: it hears of no leader");
                                    } else {
                                      found = std::move(dialed->answer.text);
                                    }
                                  });
    io.run();
    if (found) return found;
    last = {Code::kUnavailable, "cannot ask " + url + " for its cluster: " + found.error().message};
    log_warn("cannot ask a member for its cluster", {{"url", url}, {"error", found.error().message}});
  }
  return fail(std::move(last));
}

}  // namespace peer
