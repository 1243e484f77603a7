#include "sim/network.h"

#include <algorithm>

#include "base/check.h"
#include "base/crc32c.h"

namespace sim {

class SimulatedNetwork::EndpointOf final : public Endpoint {
 public:
  EndpointOf(SimulatedNetwork& network, uint64_t number, Node node, std::vector<std::string> urls)
      : network_(network), number_(number), node_(node), urls_(std::move(urls)) {
    network_.endpoints_[number_] = this;
  }
  ~EndpointOf() override {
    stop();
    network_.endpoints_.erase(number_);
  }

  void set_id(uint64_t id, uint64_t folder_id) override {
    id_ = id;
    folder_ = folder_id;
  }
  Status start(Receiver& receiver) override {
    if (network_.listening_at(urls_) != nullptr) {
      return fail(Code::kUnavailable, urls_.front() + ": the address is in use");
    }
    receiver_ = &receiver;
    return {};
  }
  void stop() override { receiver_ = nullptr; }
  void set_peers(std::vector<Peer> peers, std::vector<uint64_t> removed) override {
    peers_.clear();
    for (Peer& peer : peers) {
      const uint64_t id = peer.id;
      peers_.emplace(id, std::move(peer));
    }
    removed_ = std::set<uint64_t>(removed.begin(), removed.end());
    std::erase_if(introduced_,
                  [this](const auto& one) { return removed_.contains(one.first) || peers_.contains(one.first); });
    peers_.insert(introduced_.begin(), introduced_.end());
  }
  bool send(uint64_t to, Lane lane, Bytes frame) override {
    CHECK(frame.size() <= kFrameBytesMax, frame.size());
    const auto peer = peers_.find(to);
    if (receiver_ == nullptr || peer == peers_.end()) return false;
    return network_.send(*this, peer->second, lane, std::move(frame));
  }
  SimulatedNetwork& network_;
  const uint64_t number_;
  const Node node_;
  const std::vector<std::string> urls_;
  uint64_t id_ = 0;
  uint64_t folder_ = 0;
  Receiver* receiver_ = nullptr;  // listens while there is one
  std::map<uint64_t, Peer> peers_;
  std::map<uint64_t, Peer> introduced_;  // that came by themselves
  std::set<uint64_t> removed_;
  std::set<uint64_t> telling_;  // peers of whom an unreachable is under way
};

std::unique_ptr<SimulatedNetwork::Endpoint> SimulatedNetwork::open(Node node, std::vector<std::string> urls) {
  CHECK(!urls.empty());
  return std::make_unique<EndpointOf>(*this, next_endpoint_++, node, std::move(urls));
}

Result<Bytes> SimulatedNetwork::ask_cluster(Node from, const std::vector<std::string>& urls) {
  std::shared_ptr<Asked>& asked = asked_[from];
  if (asked != nullptr && (asked->answer || find(asked->endpoint) == nullptr)) {
    const std::optional<Bytes> answer = std::exchange(asked, nullptr)->answer;
    if (answer && !answer->empty()) return *answer;
    return fail(Code::kUnavailable, "the member that was asked cannot tell");
  }
  if (asked != nullptr) return fail(Code::kUnavailable, "no answer yet");
  EndpointOf* other = listening_at(urls);
  const bool answers = other != nullptr && !paused_.contains(other->node_) &&
                       !is_cut(from, other->node_, Lane::kControl) && !is_cut(other->node_, from, Lane::kControl);
  if (!answers) return fail(Code::kUnavailable, "no member answers");
  asked = std::make_shared<Asked>(Asked{.endpoint = other->number_});
  other->receiver_->describe_cluster([asked](Bytes answer) { asked->answer = std::move(answer); });
  return asked->answer ? ask_cluster(from, urls) : fail(Code::kUnavailable, "no answer yet");
}

SimulatedNetwork::EndpointOf* SimulatedNetwork::find(uint64_t endpoint) {
  const auto found = endpoints_.find(endpoint);
  return found == endpoints_.end() || found->second->receiver_ == nullptr ? nullptr : found->second;
}

SimulatedNetwork::EndpointOf* SimulatedNetwork::listening_at(const std::vector<std::string>& urls) {
  for (const auto& [number, endpoint] : endpoints_) {
    if (endpoint->receiver_ == nullptr) continue;
    for (const std::string& url : urls) {
      if (std::find(endpoint->urls_.begin(), endpoint->urls_.end(), url) != endpoint->urls_.end()) return endpoint;
    }
  }
  return nullptr;
}

const SimulatedNetwork::Quality& SimulatedNetwork::quality_of(Lane lane) const {
  const auto own = lane_quality_.find(lane);
  return own == lane_quality_.end() ? quality_ : own->second;
}

void SimulatedNetwork::set_quality(const Quality& quality) {
  quality_ = quality;
  links_.clear();
}

void SimulatedNetwork::set_quality(Lane lane, const Quality& quality) {
  lane_quality_[lane] = quality;
  links_.clear();
}

void SimulatedNetwork::cut(Node from, Node to) {
  for (int lane = 0; lane < Network::kLanes; ++lane) cut(from, to, static_cast<Lane>(lane));
}

void SimulatedNetwork::cut_off(Node node, const std::vector<Node>& from) {
  for (const Node other : from) {
    if (other == node) continue;
    cut(node, other);
    cut(other, node);
  }
}

void SimulatedNetwork::heal(Node from, Node to) {
  for (int lane = 0; lane < Network::kLanes; ++lane) cuts_.erase({from, to, static_cast<Lane>(lane)});
}

void SimulatedNetwork::pause(Node node) { paused_.insert(node); }

void SimulatedNetwork::resume(Node node) {
  if (paused_.erase(node) == 0) return;
  for (Event& event : held_[node]) post(std::move(event), clock_.monotonic());
  held_.erase(node);
  held_bytes_.erase(node);
}

void SimulatedNetwork::post(Event event, Time at) {
  event.at = std::max(at, clock_.monotonic());
  event.number = next_event_++;
  queue_.push(std::move(event));
}

void SimulatedNetwork::tell_unreachable(EndpointOf& endpoint, uint64_t peer, Time within) {
  if (!endpoint.telling_.insert(peer).second) return;
  const Time after{static_cast<int64_t>(random_.below(static_cast<uint64_t>(within.count()) + 1))};
  post({.kind = Kind::kUnreachable, .endpoint = endpoint.number_, .to = endpoint.node_, .from_id = peer},
       clock_.monotonic() + after);
}

bool SimulatedNetwork::send(EndpointOf& from, const Network::Peer& to, Lane lane, Bytes frame) {
  EndpointOf* target = listening_at(to.urls);
  if (target == nullptr) {  // refused
    ++stats_.refused;
    tell_unreachable(from, to.id, std::chrono::milliseconds(1));
    return false;
  }
  const Quality& quality = quality_of(lane);
  Link& link = links_[{from.node_, target->node_, lane}];
  const Time now = clock_.monotonic();
  const auto waiting = static_cast<double>((std::max(link.busy_until, now) - now).count());
  if (waiting * static_cast<double>(quality.bytes_per_second) / 1e9 > static_cast<double>(quality.queue_bytes_max)) {
    ++stats_.refused;
    return false;
  }
  ++stats_.sent;
  stats_.bytes += frame.size();
  Event event{.endpoint = target->number_,
              .sender = from.number_,
              .from = from.node_,
              .to = target->node_,
              .from_id = from.id_,
              .to_id = to.id,
              .lane = lane};
  event.frame = std::make_shared<const Bytes>(std::move(frame));
  if (is_cut(from.node_, target->node_, lane)) {
    ++stats_.lost;
    note(event, 1);
    tell_unreachable(from, to.id, kUnreachableAfter);
    return true;
  }
  carry(std::move(event), quality, link);
  return true;
}

void SimulatedNetwork::carry(Event event, const Quality& quality, Link& link) {
  const auto takes = static_cast<int64_t>(static_cast<double>(event.frame->size()) * 1e9 /
                                          static_cast<double>(quality.bytes_per_second));
  link.busy_until = std::max(link.busy_until, clock_.monotonic()) + Time(takes);
  if (happens(quality.lost_per_million)) {
    ++stats_.lost;
    note(event, 1);
    return;
  }
  const auto some = [this](Time at_most) {
    return Time(static_cast<int64_t>(random_.below(static_cast<uint64_t>(at_most.count()) + 1)));
  };
  Time arrival = link.busy_until + quality.delay + some(quality.jitter);
  if (happens(quality.reordered_per_million)) {
    ++stats_.reordered;
    arrival += some(quality.reorder_by);
  } else {
    arrival = link.last_arrival = std::max(arrival, link.last_arrival);
  }
  // A forwarded request that came twice would happen twice; no connection repeats a frame (base/network.h: once).
  if (event.lane != Lane::kForward && happens(quality.repeated_per_million)) {
    ++stats_.repeated;
    post(event, arrival + some(quality.reorder_by));
  }
  post(std::move(event), arrival);
}

void SimulatedNetwork::step() {
  CHECK(!queue_.empty());
  CHECK(queue_.top().at <= clock_.monotonic(), queue_.top().at.count(), clock_.monotonic().count());
  Event event = queue_.top();
  queue_.pop();
  if (paused_.contains(event.to)) {
    size_t& bytes = held_bytes_[event.to];
    const size_t size = event.frame ? event.frame->size() : 0;
    if (bytes + size > kHeldBytesMax) {
      ++stats_.lost;
      note(event, 1);
      return;
    }
    bytes += size;
    held_[event.to].push_back(std::move(event));
    return;
  }
  deliver(event);
}

void SimulatedNetwork::deliver(const Event& event) {
  EndpointOf* endpoint = find(event.endpoint);
  if (event.kind != Kind::kFrame) {
    note(event, 2);
    if (endpoint == nullptr) return;
    if (event.kind == Kind::kRemoved) return endpoint->receiver_->on_removed();
    if (event.kind == Kind::kOtherFolder) return endpoint->receiver_->on_other_folder();
    endpoint->telling_.erase(event.from_id);
    return endpoint->receiver_->on_unreachable(event.from_id);
  }
  EndpointOf* sender = find(event.sender);
  if (endpoint == nullptr || is_cut(event.from, event.to, event.lane)) {  // it ended, or the cut came meanwhile
    ++stats_.lost;
    note(event, 1);
    if (sender == nullptr) return;
    for (const auto& [id, peer] : sender->peers_) {
      const EndpointOf* at = listening_at(peer.urls);
      if (at == nullptr || at->node_ == event.to) tell_unreachable(*sender, id, kUnreachableAfter);
    }
    return;
  }
  if (endpoint->id_ != event.to_id) {  // another member has its place
    ++stats_.refused;
    note(event, 4);
    if (sender != nullptr) tell_unreachable(*sender, event.to_id, kUnreachableAfter);
    return;
  }
  if (endpoint->removed_.contains(event.from_id)) {
    note(event, 3);
    if (sender != nullptr) {
      post({.kind = Kind::kRemoved, .endpoint = sender->number_, .to = sender->node_}, clock_.monotonic());
    }
    return;
  }
  const auto known = endpoint->peers_.find(event.from_id);
  const uint64_t folder = known != endpoint->peers_.end() ? known->second.folder_id : 0;
  if (folder != 0 && sender != nullptr && sender->folder_ != 0 && folder != sender->folder_) {
    note(event, 6);
    return post({.kind = Kind::kOtherFolder, .endpoint = sender->number_, .to = sender->node_}, clock_.monotonic());
  }
  if (known == endpoint->peers_.end()) {  // it has not heard of that one yet
    if (sender == nullptr) return note(event, 1);
    endpoint->introduced_[event.from_id] = {event.from_id, sender->urls_};
    endpoint->peers_.insert(*endpoint->introduced_.find(event.from_id));
  }
  ++stats_.delivered;
  note(event, 5);
  endpoint->receiver_->on_frame(event.from_id, event.lane, *event.frame);
}

void SimulatedNetwork::note(const Event& event, uint64_t outcome) {
  const uint64_t content = event.frame ? crc32c(as_bytes(*event.frame)) : 0;
  for (const uint64_t part : {static_cast<uint64_t>(clock_.monotonic().count()), static_cast<uint64_t>(event.kind),
                              outcome, (static_cast<uint64_t>(event.from) << 32) | event.to, event.from_id,
                              static_cast<uint64_t>(event.lane), content}) {
    trace_ = (trace_ ^ part) * 0x100000001b3ULL;
    trace_ ^= trace_ >> 29;
  }
}

}  // namespace sim
