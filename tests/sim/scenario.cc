#include "sim/scenario.h"

#include <algorithm>

#include "base/check.h"

namespace sim {

namespace command {

conclavepb::Entry put(const std::string& key, const std::string& value, int64_t lease) {
  conclavepb::Entry entry;
  entry.mutable_put()->set_key(key);
  entry.mutable_put()->set_value(value);
  entry.mutable_put()->set_lease(lease);
  return entry;
}
conclavepb::Entry erase(const std::string& key, const std::string& end) {
  conclavepb::Entry entry;
  entry.mutable_delete_range()->set_key(key);
  entry.mutable_delete_range()->set_range_end(end);
  return entry;
}
conclavepb::Entry txn(etcdserverpb::TxnRequest request) {
  conclavepb::Entry entry;
  *entry.mutable_txn() = std::move(request);
  return entry;
}
conclavepb::Entry compaction(int64_t revision, bool physical) {
  conclavepb::Entry entry;
  entry.mutable_compaction()->set_revision(revision);
  entry.mutable_compaction()->set_physical(physical);
  return entry;
}
conclavepb::Entry grant(int64_t id, int64_t ttl) {
  conclavepb::Entry entry;
  entry.mutable_lease_grant()->set_id(id);
  entry.mutable_lease_grant()->set_ttl(ttl);
  return entry;
}
conclavepb::Entry revoke(int64_t id) {
  conclavepb::Entry entry;
  entry.mutable_lease_revoke()->set_id(id);
  return entry;
}

}  // namespace command

namespace {

int64_t header_revision(const google::protobuf::Message& message) {
  const auto* header = message.GetDescriptor()->FindFieldByName("header");
  CHECK(header != nullptr, message.GetTypeName());
  return static_cast<const etcdserverpb::ResponseHeader&>(message.GetReflection()->GetMessage(message, header))
      .revision();
}

tl::unexpected<Error> is_down() { return fail(Code::kUnavailable, "the member is down"); }

}  // namespace

Scenario::Scenario(Setup setup)
    : cluster(setup.seed, setup.nodes,
              [&setup](size_t node, size_t nodes) {
                member::Options options = cluster_options(node, setup.members > 0 ? setup.members : nodes);
                setup.options(options);
                return options;
              }),
      invariants(cluster),
      power_cuts_(setup.nodes) {
  for (size_t i = 0; i < setup.disks.size(); ++i) cluster.replace_machine(i, std::move(setup.disks[i]));
  for (size_t i = setup.members; setup.members > 0 && i < setup.nodes; ++i) cluster.node(i).wanted = false;
  cluster.after_step = [this](size_t node, const char*) { invariants.check(node); };
  cluster.before_down = [this](size_t node) {
    power_cuts_[node] += disk(node).power_cut();
    for (const auto& watch : watches_) {
      if (watch->node() == node) watch->disconnect();
    }
  };
}

Scenario::~Scenario() {
  for (const auto& watch : watches_) watch->disconnect();
  for (const std::string& fault : cluster.faults()) ADD_FAILURE() << fault;
  if (testing::Test::HasFailure())
    std::printf("seed %llu\n%s", static_cast<unsigned long long>(cluster.seed), cluster.recent().c_str());
  for (size_t i = 0; i < cluster.size(); ++i) {  // while those are alive whom it may still answer
    if (cluster.node(i).is_open()) cluster.kill(i);
  }
}

member::Member& Scenario::member(size_t node) {
  if (!cluster.node(node).is_open()) std::printf("%s", cluster.recent().c_str());
  CHECK(cluster.node(node).is_open(), node, cluster.seed);
  return cluster.member(node);
}

std::optional<size_t> Scenario::ready_leader() {
  const auto leader = cluster.leader();
  if (!leader || published(*leader).applied_term != member(*leader).term()) return std::nullopt;
  return leader;
}

size_t Scenario::await_leader() {
  EXPECT_TRUE(until([this] { return ready_leader().has_value(); })) << "no leader";
  return ready_leader().value_or(0);
}

bool Scenario::all_equal() {
  std::optional<uint64_t> applied;
  for (size_t i = 0; i < cluster.size(); ++i) {
    if (!cluster.node(i).wanted) continue;
    if (!cluster.is_up(i)) return false;
    const auto state = member(i).state();
    if (state.raft.leader == raft::kNobody || state.proposals_waiting > 0) return false;
    if (!applied) applied = state.published.applied_index;
    if (state.published.applied_index != *applied || state.raft.last_index != *applied) return false;
  }
  return applied.has_value();
}

size_t Scenario::follower(size_t leader, size_t which) const { return (leader + 1 + which) % cluster.size(); }

void Scenario::cut_off(size_t node) {
  std::vector<SimulatedNetwork::Node> all;
  for (size_t i = 0; i < cluster.size(); ++i) all.push_back(static_cast<SimulatedNetwork::Node>(i));
  cluster.network.cut_off(static_cast<SimulatedNetwork::Node>(node), all);
}

void Scenario::stop(size_t node) {
  cluster.node(node).wanted = false;
  if (cluster.node(node).is_open()) cluster.kill(node);
}

void Scenario::power_off(size_t node, MemoryDisk::Loss loss) {
  cluster.node(node).wanted = false;
  cluster.crash(node, loss);
}

void Scenario::start(size_t node) {
  cluster.node(node).wanted = true;
  cluster.node(node).start_at = cluster.clock.monotonic();
}

int64_t Scenario::leave_behind(size_t node) {
  const int64_t last = fill(120, 2000);
  run_for(std::chrono::seconds(1));  // the log is shortened
  for (size_t i = 0; i < cluster.size(); ++i) {
    if (i != node) stop(i);
  }
  for (size_t i = 0; i < cluster.size(); ++i) {
    if (i != node) start(i);
  }
  await_leader();
  return last;
}

Answer<Result<apply::Message>> Scenario::ask(size_t node, conclavepb::Entry command) {
  auto answer = std::make_shared<std::optional<Result<apply::Message>>>();
  if (!cluster.is_up(node)) return answer->emplace(is_down()), answer;
  member(node).propose(std::move(command), [answer](Result<apply::Message> done) { answer->emplace(std::move(done)); });
  return answer;
}

Result<int64_t> Scenario::write(size_t node, conclavepb::Entry command) {
  const auto answer = ask(node, std::move(command));
  if (!until([&] { return answer->has_value(); })) return fail(Code::kUnknown, "no answer");
  if (!**answer) return fail((*answer)->error());
  const int64_t revision = header_revision(****answer);
  invariants.acknowledged(revision);
  return revision;
}

int64_t Scenario::must(size_t node, conclavepb::Entry command) {
  const std::string what = command.ShortDebugString();
  const auto revision = write(node, std::move(command));
  EXPECT_TRUE(revision) << what << ": " << revision.error().message;
  return revision.value_or(0);
}

int64_t Scenario::fill(int count, size_t bytes, const std::string& prefix) {
  constexpr int kAtATime = 8;
  int64_t last = 0;
  for (int done = 0; done < count && !cluster.stopped(); done += kAtATime) {
    const size_t leader = await_leader();
    std::vector<Answer<Result<apply::Message>>> answers;
    for (int i = done; i < std::min(count, done + kAtATime); ++i) {
      std::string value = std::to_string(++filled_) + ":";
      while (value.size() < bytes) value.push_back(static_cast<char>('a' + cluster.random.below(26)));
      answers.push_back(ask(leader, command::put(prefix + std::to_string(i), value)));
    }
    const auto answered = [&] {
      return std::all_of(answers.begin(), answers.end(), [](const auto& answer) { return answer->has_value(); });
    };
    if (!until(answered)) {
      ADD_FAILURE() << "a put was not answered";
      return last;
    }
    for (const auto& answer : answers) {
      EXPECT_TRUE(**answer) << (*answer)->error().message;
      if (**answer) last = std::max(last, header_revision(****answer));
    }
    invariants.acknowledged(last);
  }
  return last;
}

Answer<Status> Scenario::change(size_t node, conclavepb::MembershipChange change) {
  auto answer = std::make_shared<std::optional<Status>>();
  member(node).change_membership(std::move(change), [answer](const Result<apply::Message>& done) {
    answer->emplace(done ? Status() : Status(fail(done.error())));
  });
  return answer;
}

Answer<Result<std::string>> Scenario::read(size_t node, const std::string& key) {
  auto answer = std::make_shared<std::optional<Result<std::string>>>();
  if (!cluster.is_up(node)) return answer->emplace(is_down()), answer;
  member(node).linearize([this, node, key, answer](const Status& may) {
    if (may) {
      answer->emplace(look(node, key));
    } else {
      answer->emplace(fail(may.error()));
    }
  });
  return answer;
}

std::string Scenario::look(size_t node, const std::string& key) {
  const auto found = member(node).reader()->get(key, 0);
  EXPECT_TRUE(found) << found.error().message;
  return found && *found ? std::string((*found)->value) : std::string();
}

Answer<Result<int64_t>> Scenario::keep_alive(size_t node, int64_t lease) {
  auto answer = std::make_shared<std::optional<Result<int64_t>>>();
  if (!cluster.is_up(node)) return answer->emplace(is_down()), answer;
  member(node).keep_alive(lease, [answer](Result<int64_t> ttl) { answer->emplace(std::move(ttl)); });
  return answer;
}

WatchClient& Scenario::watch(const WatchClient::What& what) {
  return *watches_.emplace_back(std::make_unique<WatchClient>(*this, what));
}

void Scenario::learn() {
  std::optional<size_t> best;
  for (size_t i = 0; i < cluster.size(); ++i) {
    if (cluster.is_up(i) && (!best || published(i).revision > published(*best).revision)) best = i;
  }
  ASSERT_TRUE(best) << "nobody knows what happened";
  const auto reader = member(*best).reader();
  const int64_t until = reader->at().revision;
  if (until <= learnt_) return;
  const Status read = read_events(*reader, learnt_ + 1, until, events_);
  ASSERT_TRUE(read) << read.error().message;
  learnt_ = until;
}

void Scenario::check_watches(bool complete) {
  learn();
  for (const auto& watch : watches_) {
    const auto verdict = history::check_watch(watch->record(), events_, complete ? learnt_ : 0);
    EXPECT_TRUE(verdict.ok()) << verdict.text;
  }
}

std::string difference(member::Member& one, member::Member& other) {
  const auto a = one.state().published;
  const auto b = other.state().published;
  if (a.applied_index != b.applied_index || a.applied_term != b.applied_term) return "the last entry applied";
  if (a.revision != b.revision) return "the revision";
  if (a.compacted != b.compacted) return "the compacted revision";
  history::Events events[2];
  const int64_t from = std::max<int64_t>(a.compacted + 1, 1);
  for (int i = 0; i < 2; ++i) {
    const auto reader = (i == 0 ? one : other).reader();
    if (from <= a.revision) {
      if (Status read = read_events(*reader, from, a.revision, events[i]); !read) return read.error().message;
    }
    etcdserverpb::RangeRequest all;
    all.set_key(std::string(1, '\0'));
    all.set_range_end(std::string(1, '\0'));
    etcdserverpb::RangeResponse now;
    if (Status read = reader->range(all, &now); !read) return read.error().message;
    for (const auto& kv : now.kvs()) events[i][0].push_back({false, key_value_of(kv)});
  }
  if (events[0] != events[1]) return "the keys or their history";
  const auto leases = [](member::Member& member) {
    std::vector<std::pair<int64_t, std::vector<Bytes>>> all;
    for (const auto& info : member.leases().list()) all.emplace_back(info.id, member.leases().keys(info.id));
    return all;
  };
  if (leases(one) != leases(other)) return "the leases";
  if (one.members() != other.members()) return "the members";
  return {};
}

}  // namespace sim
