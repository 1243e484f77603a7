// What all connections of a network share. Belongs to the network's thread, but for what says otherwise.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>

#include "base/thread.h"
#include "peer/hello.h"
#include "peer/limits.h"
#include "peer/meters.h"
#include "peer/network.h"
#include "peer/resolver.h"

namespace peer {

using SteadyClock = std::chrono::steady_clock;
using TimePoint = SteadyClock::time_point;

// Who is who, in the words of the last set_peers(). Any thread.
class Roster {
 public:
  enum class Standing : uint8_t { kPeer, kRemoved, kStranger, kOtherFolder };
  void set(std::map<uint64_t, uint64_t> folders_of_peers, std::set<uint64_t> removed) EXCLUDES(mutex_);
  Standing of(uint64_t id, uint64_t folder) const EXCLUDES(mutex_);  // folder 0: it is not told
  bool admit(uint64_t id) EXCLUDES(mutex_);                          // as a peer, unless it was removed
  void dismiss(uint64_t id) EXCLUDES(mutex_);                        // is a stranger again

 private:
  mutable Mutex mutex_;
  std::map<uint64_t, uint64_t> peers_ GUARDED_BY(mutex_);  // by id, with their folders
  std::set<uint64_t> removed_ GUARDED_BY(mutex_);
};

// A message about the same thing is due once in kLogPeriod.
class LogLimit {
 public:
  bool due(const std::string& key, TimePoint now);

 private:
  std::map<std::string, TimePoint> last_;
};

// All follow from the election timeout, which counts as kElectionTimeoutMin at least.
struct Timing {
  explicit Timing(Milliseconds election_timeout);
  Milliseconds tick;          // how often deadlines are looked at
  Milliseconds dial;          // for one address, from connecting to the answer to the hello
  Milliseconds control_ping;  // a control connection is asked for a sign of life so often,
  Milliseconds control_dead;  // and made anew when there was none for so long
  Milliseconds bulk_ping;  // the same for the other lanes, where bytes that the other side acknowledges are a sign too
  Milliseconds bulk_dead;
};

struct Core {
  Core(Options the_options, metrics::Registry& metrics);

  boost::asio::io_context io{1};
  const Options options;
  const Timing timing;
  Meters meters;
  Roster roster;
  Resolver resolver{io};
  LogLimit log_limit;
  std::minstd_rand jitter;  // so that members do not dial in step; nothing else hangs on it
  Network::Receiver* receiver = nullptr;
  bool told_removed = false;
  std::function<void(uint64_t peer)> on_life;     // it has just connected: dial it without waiting
  std::function<void(uint64_t peer)> on_silence;  // its control connection is dead: so are the others
  // A stranger that knows the cluster and this member says where it is reached. True: it counts as a peer from now on.
  std::function<bool(const Hello& hello)> on_stranger;
  std::function<void(const Hello& hello)> on_peer;  // it was let in, and says where it is reached

  const LaneLimits& limits(Network::Lane lane) const { return options.lanes[static_cast<size_t>(lane)]; }
};

const char* lane_name(Network::Lane lane);

}  // namespace peer
