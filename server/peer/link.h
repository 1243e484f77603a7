// One lane to one peer: a bounded queue, and a connection that is made anew whenever it breaks. Made and pushed to by
// any thread, all else on the network's thread.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/thread.h"
#include "peer/core.h"
#include "peer/dial.h"
#include "peer/wire.h"

namespace peer {

class Link : public std::enable_shared_from_this<Link>, private Wire::Owner {
 public:
  Link(Core& core, uint64_t peer, Network::Lane lane);
  ~Link() override;

  // Any thread. False, and counted: not connected, or full.
  bool push(Bytes frame) EXCLUDES(mutex_);

  // Dials when there is a URL and no connection. URLs that cannot be used are logged and left out.
  void set_urls(std::vector<std::string> urls);
  // What the peer says itself, tried behind those: this member may lag behind a change of its URLs, which the peer, if
  // it leads, is the only one to tell.
  void set_told(std::vector<std::string> urls);
  void dial_now();  // the peer is there: no use in waiting for the end of the back-off
  void tick(TimePoint now);
  void forgive(TimePoint now);
  void break_off(const std::string& why);  // if connected; dials anew
  void close();                            // for good

 private:
  enum class State : uint8_t { kIdle, kWaiting, kDialing, kUp, kClosed };  // kIdle: without a URL

  void choose_urls();
  void dial();
  void dialed(Result<Dialed> result);
  void failed(const Error& error);
  void refused(const Answer& answer);
  void connected(Dialed dialed);
  void retry();
  bool log_due(const std::string& what);
  const std::string& url() const { return urls_[next_url_ % urls_.size()]; }

  bool take(std::vector<Bytes>& frames) override;
  void written(const std::vector<Bytes>& frames, size_t bytes) override;
  void on_round_trip(SteadyClock::duration took) override;
  void on_broken(const std::string& why, bool silent) override;

  Core& core_;
  const uint64_t peer_;
  const Network::Lane lane_;
  PeerMeters& meters_;
  State state_ = State::kIdle;
  std::vector<std::string> set_;
  std::vector<std::string> told_;
  std::vector<std::string> urls_;  // usable ones of both
  size_t next_url_ = 0;
  int failures_ = 0;  // in a row: the exponent of the back-off
  TimePoint up_since_;
  TimePoint unknown_since_;  // refused as an unknown sender since; 0: not
  boost::asio::steady_timer timer_;
  std::shared_ptr<Dial> dial_;
  std::shared_ptr<Wire> wire_;

  Mutex mutex_;
  bool up_ GUARDED_BY(mutex_) = false;
  bool busy_ GUARDED_BY(mutex_) = false;  // a write is posted or under way: it will find what is pushed
  std::deque<Bytes> queue_ GUARDED_BY(mutex_);
  size_t frames_ GUARDED_BY(mutex_) = 0;  // of the queue and of the batch that is being written
  size_t bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace peer
