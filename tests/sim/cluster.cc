#include "sim/cluster.h"

#include <algorithm>

#include "base/check.h"

namespace sim {
namespace {

constexpr std::chrono::milliseconds kRestartAfter{500};

// An injected fault that met a member while it started: whoever watches over it starts it again.
bool met_a_failing_call(const Error& error) { return error.message.ends_with("Input/output error"); }

std::string url(const char* scheme_and_host, size_t node, const char* port) {
  return scheme_and_host + std::to_string(node) + port;
}

}  // namespace

Cluster::Cluster(uint64_t with_seed, size_t nodes, std::function<member::Options(size_t, size_t)> options)
    : seed(with_seed), random(with_seed), network(clock, random.next()) {
  for (size_t i = 0; i < nodes; ++i) {
    auto node = std::make_unique<Node>();
    node->random = std::make_unique<SeededRandom>(random.next());
    node->machine =
        std::make_unique<Machine>(clock, *node->random, std::make_unique<MemoryDisk>(), Machine::DiskTime::kOfTheStage);
    node->options = options(i, nodes);
    nodes_.push_back(std::move(node));
  }
}

Cluster::~Cluster() {
  before_down = [](size_t) {};
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i]->is_open()) kill(i);
  }
}

Status Cluster::start(size_t index) {
  Node& node = *nodes_[index];
  node.refused.reset();
  node.paused = false;
  ++node.starts;
  const auto place = static_cast<SimulatedNetwork::Node>(index);
  Machine::Connections connections;
  connections.network = [this, place, &node](uint64_t, uint64_t member_id, uint64_t folder_id) {
    auto endpoint = network.open(place, node.options.peer_urls);
    endpoint->set_id(member_id, folder_id);
    return endpoint;
  };
  connections.ask_cluster = [this, place](const std::vector<std::string>& urls) {
    return network.ask_cluster(place, urls);
  };
  Status opened = node.machine->open(node.options, connections);
  if (!opened) {
    node.refused = opened.error();
    return opened;
  }
  note(index, "start");
  return {};
}

void Cluster::down(size_t index, std::chrono::nanoseconds for_so_long) {
  Node& node = *nodes_[index];
  network.resume(static_cast<SimulatedNetwork::Node>(index));
  node.paused = false;
  node.start_at = clock.monotonic() + for_so_long;
}

void Cluster::kill(size_t index) {
  note(index, "kill");
  before_down(index);
  if (nodes_[index]->is_open()) nodes_[index]->machine->kill();
  down(index, kRestartAfter);
}

void Cluster::crash(size_t index, MemoryDisk::Loss loss) {
  note(index, "crash");
  before_down(index);
  Machine& machine = *nodes_[index]->machine;
  if (!machine.disk().power_cut()) machine.disk().cut_power();
  if (machine.is_open()) machine.kill();
  machine.disk().crash(random, loss);
  down(index, kRestartAfter);
}

void Cluster::close(size_t index) {
  note(index, "close");
  before_down(index);
  nodes_[index]->machine->close();
  nodes_[index]->machine->disk().restart();
  down(index, kRestartAfter);
}

void Cluster::replace_machine(size_t index, std::unique_ptr<MemoryDisk> disk) {
  Node& node = *nodes_[index];
  CHECK(node.machine == nullptr || !node.is_open(), index);
  network.ask_no_more(static_cast<SimulatedNetwork::Node>(index));
  node.machine = std::make_unique<Machine>(clock, *node.random, std::move(disk), Machine::DiskTime::kOfTheStage);
}

void Cluster::pause(size_t index) {
  note(index, "pause");
  nodes_[index]->paused = true;
  network.pause(static_cast<SimulatedNetwork::Node>(index));
}

void Cluster::resume(size_t index) {
  note(index, "resume");
  nodes_[index]->paused = false;
  network.resume(static_cast<SimulatedNetwork::Node>(index));
}

void Cluster::start_the_wanted() {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = *nodes_[i];
    if (node.is_open() || !node.wanted || node.start_at > clock.monotonic()) continue;
    if (start(i)) {
      node.joining = false;
      continue;
    }
    if (node.machine->disk().power_cut()) {  // it went again meanwhile
      crash(i, node.loss);
    } else if (node.refused->code == Code::kResourceExhausted || node.joining || met_a_failing_call(*node.refused)) {
      node.machine->disk().restart();
      node.start_at = clock.monotonic() + kRestartAfter;
    } else if (node.refused->message.ends_with(member::kErrorRemoved)) {
      node.wanted = false;
    } else {
      fault("member " + std::to_string(i) + " does not start: " + node.refused->message);
      return;
    }
  }
}

void Cluster::step() {
  start_the_wanted();
  std::vector<Machine::Choice> ready;
  member::Time next = member::kWhenWoken;
  for (const auto& node : nodes_) {
    if (!node->is_open()) {
      if (node->wanted) next = std::min(next, node->start_at);
    } else if (!node->paused) {
      node->machine->collect(ready, next);
    }
  }
  const bool frame_due = network.next_time() <= clock.monotonic();
  if (!frame_due) next = std::min(next, network.next_time());
  const size_t choices = ready.size() + frame_due;
  if (choices == 0) {
    const auto soon = clock.monotonic() + std::chrono::milliseconds(1);
    clock.advance_to(next == member::kWhenWoken ? soon : std::max(next, clock.monotonic() + member::Time(1)));
    return;
  }
  ++steps_;
  const size_t chosen = random.below(choices);
  if (chosen == ready.size()) {
    network.step();
    note(nodes_.size(), "network");
    after_step(nodes_.size(), "network");
    return;
  }
  run_member(ready[chosen]);
}

void Cluster::run_member(const Machine::Choice& choice) {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(),
                                  [&choice](const auto& node) { return node->machine.get() == choice.machine; });
  const auto index = static_cast<size_t>(found - nodes_.begin());
  const char* what = choice.machine->stage_name(choice.stage);
  choice.machine->run(choice.stage);
  note(index, what);
  if (choice.machine->disk().power_cut()) {
    crash(index, nodes_[index]->loss);
  } else if (choice.machine->wants_replacement()) {
    replace(index);
  } else if (choice.machine->failure()) {
    kill(index);
  }
  after_step(index, what);
}

// It has got a snapshot: closed, put in force, opened again at once. The power may go in the middle of it.
void Cluster::replace(size_t index) {
  note(index, "replace");
  before_down(index);
  Node& node = *nodes_[index];
  const Status replaced = node.machine->replace(node.options);
  down(index, std::chrono::nanoseconds(0));
  if (node.machine->disk().power_cut()) return crash(index, node.loss);
  ++replacements_;
  if (!replaced && replaced.error().code != Code::kResourceExhausted && replaced.error().code != Code::kDataLoss) {
    fault("member " + std::to_string(index) + " cannot be replaced: " + replaced.error().message);
  }
}

std::optional<size_t> Cluster::leader() {
  std::optional<size_t> best;
  uint64_t best_term = 0;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!is_up(i)) continue;
    const auto raft = member(i).state().raft;
    if (raft.role != raft::Role::kLeader || raft.term <= best_term) continue;
    best = i;
    best_term = raft.term;
  }
  return best;
}

void Cluster::fault(const std::string& text) {
  faults_.push_back("seed " + std::to_string(seed) + " at " +
                    std::to_string(static_cast<double>(clock.monotonic().count()) / 1e9) + " s: " + text);
}

void Cluster::note(size_t node, const char* what) {
  const uint64_t name = static_cast<uint64_t>(what[0]) << 8 | static_cast<uint64_t>(what[1]);
  for (const uint64_t part : {static_cast<uint64_t>(clock.monotonic().count()), static_cast<uint64_t>(node), name}) {
    trace_ = (trace_ ^ part) * 0x100000001b3ULL;
    trace_ ^= trace_ >> 31;
  }
  if (recent_.size() == 2 * kRecentMax) recent_.erase(recent_.begin(), recent_.begin() + kRecentMax);
  recent_.push_back({clock.monotonic(), node, what});
}

std::string Cluster::recent() {
  std::string text;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    text += "member " + std::to_string(i) + " (start " + std::to_string(nodes_[i]->starts) + "): ";
    if (!nodes_[i]->is_open()) {
      text += nodes_[i]->wanted ? "down\n" : "out\n";
      continue;
    }
    const auto state = member(i).state();
    text += std::to_string(state.member_id) + (nodes_[i]->paused ? " paused " : " ") + raft::name(state.raft.role) +
            " of term " + std::to_string(state.raft.term) + ", leader " + std::to_string(state.raft.leader) +
            ", last " + std::to_string(state.raft.last_index) + ", commit " + std::to_string(state.raft.commit_index) +
            ", applied " + std::to_string(state.published.applied_index) + ", revision " +
            std::to_string(state.published.revision) + ", proposals " + std::to_string(state.proposals_waiting) +
            (state.out_of_space ? ", out of space" : "") + "; members";
    for (const apply::Member& one : member(i).members()) {
      text += " " + std::to_string(one.id) + (one.is_learner ? " (learner)" : "");
    }
    text += "\n";
  }
  const size_t first = recent_.size() > kRecentMax ? recent_.size() - kRecentMax : 0;
  for (size_t i = first; i < recent_.size(); ++i) {
    const Happened& one = recent_[i];
    text += std::to_string(one.at.count() / 1000) + " us: ";
    text += one.node == nodes_.size() ? "" : "member " + std::to_string(one.node) + ": ";
    text += std::string(one.what) + "\n";
  }
  return text;
}

member::Options cluster_options(size_t node, size_t nodes) {
  member::Options options = default_options();
  options.name = "m" + std::to_string(node);
  options.peer_urls = {url("http://m", node, ":2380")};
  options.client_urls = {url("http://m", node, ":2379")};
  for (size_t i = 0; i < nodes; ++i) {
    options.initial_cluster.push_back({"m" + std::to_string(i), {url("http://m", i, ":2380")}});
  }
  return options;
}

}  // namespace sim
