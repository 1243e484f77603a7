// The simulated network: any number of machines in one thread and in virtual time. Frames are lost, delayed, reordered
// and repeated as a seed decides, links have a bandwidth, and the test cuts them, in each direction and lane by itself.
//
//   SimulatedNetwork network(clock, seed);
//   auto endpoint = network.open(node, {"http://m1:2380"});    // a member's Network; a new one after each restart
//   endpoint->set_id(member_id);
//   ...
//   while (auto next = network.next_time(); next <= clock.monotonic()) network.step();   // one event at a time
//
// The same seed and the same calls give the same events: trace() tells.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "base/memory_disk.h"
#include "base/network.h"
#include "base/world.h"

namespace sim {

class SimulatedNetwork {
 public:
  using Time = std::chrono::nanoseconds;
  using Node = uint32_t;  // a machine
  using Lane = Network::Lane;
  static constexpr Time kNothing = Time::max();
  static constexpr size_t kHeldBytesMax = 16 << 20;  // that wait for a paused machine; more are lost

  // Of one direction and lane.
  struct Quality {
    Time delay{std::chrono::microseconds(150)};
    Time jitter{std::chrono::microseconds(200)};
    uint32_t lost_per_million = 0;
    uint32_t repeated_per_million = 0;   // never in the lane kForward
    uint32_t reordered_per_million = 0;  // arrives up to `reorder_by` later, past others
    Time reorder_by{std::chrono::milliseconds(20)};
    uint64_t bytes_per_second = 1'000'000'000;
    uint64_t queue_bytes_max = 64 << 20;  // waiting for the bandwidth; send() fails beyond
  };
  struct Stats {
    uint64_t sent = 0, delivered = 0, lost = 0, repeated = 0, reordered = 0, refused = 0, bytes = 0;
  };

  class Endpoint : public Network {
   public:
    // As which member it introduces itself. Before its first frame.
    virtual void set_id(uint64_t id, uint64_t folder_id = 0) = 0;
  };

  SimulatedNetwork(Clock& clock, uint64_t seed) : clock_(clock), random_(seed) {}

  // What is on its way to an endpoint that is destroyed is lost; what it has sent goes on. Outlived by this object.
  std::unique_ptr<Endpoint> open(Node node, std::vector<std::string> urls);

  // As a machine that is no member yet asks. Nobody may wait here: kUnavailable until there is an answer, ask again
  // later. Each answer is given once.
  Result<Bytes> ask_cluster(Node from, const std::vector<std::string>& urls);
  // The machine waits for no answer any more.
  void ask_no_more(Node from) { asked_.erase(from); }

  // Of all that is sent from now on; it does not wait for what is still under way.
  void set_quality(const Quality& quality);
  void set_quality(Lane lane, const Quality& quality);
  // Frames from one to the other get lost, those under way too, until heal(). The sender hears that the other one is
  // unreachable after up to kUnreachableAfter.
  void cut(Node from, Node to, Lane lane) { cuts_.insert({from, to, lane}); }
  void cut(Node from, Node to);
  void cut_off(Node node, const std::vector<Node>& from);  // both directions, all lanes
  void heal(Node from, Node to);
  void heal_all() { cuts_.clear(); }
  bool is_cut(Node from, Node to, Lane lane) const { return cuts_.contains({from, to, lane}); }
  // The machine stands still: what arrives waits until it goes on.
  void pause(Node node);
  void resume(Node node);

  Time next_time() const { return queue_.empty() ? kNothing : queue_.top().at; }
  // The next event, which must be due. Calls a receiver or not.
  void step();

  const Stats& stats() const { return stats_; }
  uint64_t trace() const { return trace_; }

  static constexpr Time kUnreachableAfter = std::chrono::milliseconds(500);

 private:
  class EndpointOf;
  enum class Kind : uint8_t { kFrame, kUnreachable, kRemoved, kOtherFolder };
  struct Event {
    Time at{};
    uint64_t number = 0;
    Kind kind = Kind::kFrame;
    uint64_t endpoint = 0;  // that hears it
    uint64_t sender = 0;    // endpoint of a frame
    Node from = 0;
    Node to = 0;
    uint64_t from_id = 0;  // kFrame: the sender's; kUnreachable: the peer's
    uint64_t to_id = 0;    // kFrame: for whom it is
    Lane lane = Lane::kControl;
    std::shared_ptr<const Bytes> frame = {};
    bool operator<(const Event& other) const { return std::tie(at, number) > std::tie(other.at, other.number); }
  };
  struct Asked {
    uint64_t endpoint = 0;
    std::optional<Bytes> answer = {};
  };
  struct Link {
    Time busy_until{};
    Time last_arrival{};
  };

  void post(Event event, Time at);
  bool send(EndpointOf& from, const Network::Peer& to, Lane lane, Bytes frame);
  void carry(Event event, const Quality& quality, Link& link);
  void deliver(const Event& event);
  void tell_unreachable(EndpointOf& endpoint, uint64_t peer, Time within);
  EndpointOf* listening_at(const std::vector<std::string>& urls);
  EndpointOf* find(uint64_t endpoint);
  const Quality& quality_of(Lane lane) const;
  bool happens(uint32_t per_million) { return random_.below(1'000'000) < per_million; }
  void note(const Event& event, uint64_t outcome);

  Clock& clock_;
  SeededRandom random_;
  Quality quality_;
  std::map<Lane, Quality> lane_quality_;
  std::map<uint64_t, EndpointOf*> endpoints_;
  uint64_t next_endpoint_ = 1;
  std::map<Node, std::shared_ptr<Asked>> asked_;
  std::set<std::tuple<Node, Node, Lane>> cuts_;
  std::set<Node> paused_;
  std::map<Node, std::vector<Event>> held_;
  std::map<Node, size_t> held_bytes_;
  std::map<std::tuple<Node, Node, Lane>, Link> links_;
  std::priority_queue<Event> queue_;
  uint64_t next_event_ = 1;
  Stats stats_;
  uint64_t trace_ = 0xcbf29ce484222325ULL;
};

}  // namespace sim
