#include "raft/raft_test_cluster.h"

#include <algorithm>
#include <sstream>

namespace raft {

uint64_t TestDisk::term_at(uint64_t index) const {
  if (index < base.index || index > last_index()) return 0;
  return index == base.index ? base.term : entries[index - base.index - 1].term;
}

void TestDisk::write(const Ready& ready) {
  if (ready.snapshot) {
    base = *ready.snapshot;
    entries.clear();
  }
  for (const LogEntry& entry : ready.entries) {
    ASSERT_GT(entry.index, base.index);
    ASSERT_LE(entry.index, last_index() + 1);
    entries.resize(entry.index - base.index - 1);
    entries.push_back(entry);
  }
  if (ready.hard_state) {
    hard_state = *ready.hard_state;
    EXPECT_LE(hard_state.commit, last_index());
  }
}

std::string text_of(const Membership& membership) {
  std::ostringstream out;
  for (const uint64_t id : membership.voters) out << (id == membership.voters.front() ? "" : ",") << id;
  for (const uint64_t id : membership.learners) out << (id == membership.learners.front() ? " " : ",") << id;
  return out.str();
}

Membership membership_of(const std::string& text) {
  Membership membership;
  std::istringstream in(text);
  for (auto* ids : {&membership.voters, &membership.learners}) {
    std::string list;
    in >> list;
    std::istringstream numbers(list);
    for (std::string number; std::getline(numbers, number, ',');) ids->push_back(std::stoull(number));
    std::sort(ids->begin(), ids->end());
  }
  return membership;
}

Config TestCluster::small() {
  return {.unapplied_bytes_max = 3000,
          .batch_bytes_max = 600,
          .apply_bytes_max = 600,
          .message_bytes_max = 400,
          .inflight_messages_max = 4,
          .inflight_bytes_max = 2000};
}

Membership TestCluster::all_voters(uint64_t size) {
  Membership membership;
  for (uint64_t id = 1; id <= size; ++id) membership.voters.push_back(id);
  return membership;
}

TestCluster::TestCluster(Membership membership, uint64_t size, uint64_t seed, const Config& config)
    : random_(seed), first_membership_(std::move(membership)) {
  for (uint64_t id = 1; id <= size; ++id) {
    members[id].config = config;
    members[id].config.id = id;
    start(id);
  }
}

void TestCluster::crash(uint64_t id, uint64_t store_back) {
  TestMember& member = members.at(id);
  member.node.reset();
  member.syncing.clear();
  member.to_apply.clear();
  member.snapshots_needed.clear();
  member.fetching.reset();
  member.stored = std::max(member.store_durable, member.stored - std::min(store_back, member.stored));
}

void TestCluster::start(uint64_t id) {
  crash(id);
  TestMember& member = members.at(id);
  // A store that was replaced while the log did not hear of it: the install is finished now.
  if (member.stored > 0 && member.disk.term_at(member.stored) != decided(member.stored).term) {
    EXPECT_EQ(member.stored, member.store_durable);
    member.disk.base = {member.stored, decided(member.stored).term};
    member.disk.entries.clear();
    HardState& state = member.disk.hard_state;
    state.commit = member.stored;
    if (state.term < member.disk.base.term) state = {member.disk.base.term, kNobody, member.stored};
  }
  Restored restored{.hard_state = member.disk.hard_state,
                    .base_index = member.disk.base.index,
                    .base_term = member.disk.base.term,
                    .entries = member.disk.all(),
                    .applied = member.stored,
                    .membership = membership_at(member.stored)};
  member.node = std::make_unique<Node>(member.config, std::move(restored), random_);
  take(id);
}

void TestCluster::take(uint64_t id) {
  TestMember& member = members.at(id);
  while (auto ready = member.node->take_ready()) {
    check_written(id, *ready);
    if (ready->soft_state && ready->soft_state->role == Role::kLeader) check_leader(id);
    for (auto& message : ready->messages_now) network.push_back(std::move(message));
    for (auto& entry : ready->committed) {
      decide(id, entry);  // here, not when it is applied: the rules are about what is committed
      member.to_apply.push_back({std::nullopt, std::move(entry)});
    }
    for (const auto& read : ready->read_states) check_read(read);
    for (const uint64_t context : ready->reads_dropped) dropped_reads.insert(context);
    for (const uint64_t needy : ready->snapshots_needed) member.snapshots_needed.push_back(needy);
    if (ready->snapshot_offered) member.fetching = ready->snapshot_offered;
    if (ready->persists()) member.syncing.push_back(std::move(*ready));
  }
}

bool TestCluster::sync_one(uint64_t id) {
  TestMember& member = members.at(id);
  if (member.syncing.empty() || member.disk_stands_still) return false;
  Ready& first = member.syncing.front();
  if (first.snapshot && member.stored < first.snapshot->index) return false;  // the store first
  Ready ready = std::move(first);
  member.syncing.pop_front();
  member.disk.write(ready);
  for (auto& message : ready.messages_after_sync) network.push_back(std::move(message));
  member.node->persisted(ready.batch);
  take(id);
  return true;
}

bool TestCluster::apply_one(uint64_t id) {
  TestMember& member = members.at(id);
  if (member.to_apply.empty() || member.apply_stands_still) return false;
  const TestMember::ToApply item = std::move(member.to_apply.front());
  member.to_apply.pop_front();
  if (item.snapshot) {
    member.stored = member.store_durable = item.snapshot->index;
    ++installs;
    return true;
  }
  const LogEntry& entry = item.entry;
  EXPECT_EQ(entry.index, member.stored + 1);
  EXPECT_EQ(member.disk.term_at(entry.index), entry.term) << "applied what is not durable here";
  member.stored = entry.index;
  if (random_.below(4) == 0) member.store_durable = member.stored;
  if (entry.type == EntryType::kMembership) member.node->set_membership(entry.index, membership_of(*entry.data));
  member.node->applied(entry.index);
  take(id);
  return true;
}

bool TestCluster::serve_snapshot(uint64_t id) {
  TestMember& member = members.at(id);
  if (member.snapshots_needed.empty()) return false;
  const uint64_t to = member.snapshots_needed.front();
  member.snapshots_needed.pop_front();
  const uint64_t index = member.node->applied_index();
  const auto offered = member.node->offer_snapshot(to, index, decided(index).term);
  if (!offered) {
    EXPECT_EQ(offered.error().code, Code::kFailedPrecondition) << offered.error().message;
  }
  take(id);
  return true;
}

bool TestCluster::fetch_snapshot(uint64_t id) {
  TestMember& member = members.at(id);
  if (!member.fetching) return false;
  const SnapshotPoint point = member.fetching->point;
  member.fetching.reset();
  EXPECT_EQ(decided(point.index).term, point.term);
  if (member.node->install(point.index, point.term, membership_at(point.index))) {
    member.to_apply.push_back({point, {}});
  }
  take(id);
  return true;
}

bool TestCluster::fail_snapshot(uint64_t id) {
  TestMember& member = members.at(id);
  if (!member.fetching) return false;
  const uint64_t from = member.fetching->from;
  member.fetching.reset();
  member.node->fetch_failed();
  if (is_up(from)) {
    node(from).snapshot_failed(id);
    take(from);
  }
  return true;
}

void TestCluster::deliver(size_t number) {
  Message message = std::move(network[number]);
  network.erase(network.begin() + static_cast<std::ptrdiff_t>(number));
  const uint64_t to = message.to;
  const bool lost = !is_up(to) || cut.contains({message.from, to});
  if (on_delivery) on_delivery(message, lost);
  if (lost) return;
  const Status status = node(to).step(std::move(message));
  EXPECT_TRUE(status) << status.error().message;
  take(to);
}

void TestCluster::tick(uint64_t id) {
  node(id).tick();
  take(id);
}

Result<Proposed> TestCluster::propose(uint64_t id, std::vector<std::string> texts) {
  std::vector<Proposal> proposals;
  for (auto& text : texts) proposals.push_back({.data = std::make_shared<const Bytes>(std::move(text))});
  auto result = node(id).propose(proposals);
  take(id);
  return result;
}

Result<Proposed> TestCluster::propose(uint64_t id, const Membership& membership) {
  const Proposal proposal{EntryType::kMembership, std::make_shared<const Bytes>(text_of(membership))};
  auto result = node(id).propose(std::span(&proposal, 1));
  take(id);
  return result;
}

Status TestCluster::transfer(uint64_t id, uint64_t to) {
  auto result = node(id).transfer_leadership(to);
  take(id);
  return result;
}

Status TestCluster::read(uint64_t id, const std::vector<uint64_t>& contexts) {
  for (const uint64_t context : contexts) {
    TRY(node(id).read_index(context));
    reads_[context] = decided_.size();
  }
  take(id);
  return {};
}

void TestCluster::settle(const std::set<uint64_t>& down) {
  constexpr uint64_t kDeliveriesMax = 100'000;
  uint64_t deliveries = 0;
  for (bool busy = true; busy;) {
    busy = false;
    for (auto& [id, member] : members) {
      if (down.contains(id) || !member.node) continue;
      while (sync_one(id) || apply_one(id) || serve_snapshot(id) || fetch_snapshot(id)) busy = true;
    }
    std::erase_if(network, [&](const Message& m) { return down.contains(m.to) || down.contains(m.from); });
    if (!network.empty()) {
      if (++deliveries > kDeliveriesMax) {
        ADD_FAILURE() << "there is no end of messages; the next is a " << name(network.front().type);
        return network.clear();
      }
      deliver(0);
      busy = true;
    }
  }
}

void TestCluster::elect(uint64_t id, const std::set<uint64_t>& down) {
  for (int i = 0; i < 1000 && node(id).role() != Role::kLeader; ++i) {
    if (node(id).term() > 0 && node(id).role() != Role::kCandidate) {
      EXPECT_TRUE(node(id).step(
          {.type = MessageType::kTimeoutNow, .from = id % members.size() + 1, .to = id, .term = node(id).term()}));
      take(id);
    } else {
      tick(id);
    }
    settle(down);
  }
  ASSERT_EQ(node(id).role(), Role::kLeader);
}

void TestCluster::tick_all(uint64_t times, const std::set<uint64_t>& down) {
  for (uint64_t i = 0; i < times; ++i) {
    for (auto& [id, member] : members) {
      if (member.node && !down.contains(id)) tick(id);
    }
    settle(down);
  }
}

uint64_t TestCluster::leader() const {
  uint64_t best = kNobody;
  uint64_t term = 0;
  for (const auto& [id, member] : members) {
    if (member.node && member.node->role() == Role::kLeader && member.node->term() > term) {
      best = id;
      term = member.node->term();
    }
  }
  return best;
}

const Membership& TestCluster::membership_at(uint64_t index) const {
  return index == 0 ? first_membership_ : decided_.at(index - 1).membership;
}

// Log matching: whoever writes an entry of this term and index writes the same, after an entry of the same term; then
// two logs with this entry are equal before it, too.
void TestCluster::check_written(uint64_t id, const Ready& ready) {
  for (const LogEntry& entry : ready.entries) {
    const uint64_t previous_term = node(id).log().term_at(entry.index - 1).value();
    const auto [first, fresh] =
        written_.try_emplace(entry.term << 32 | entry.index, Written{previous_term, entry.data});
    EXPECT_EQ(first->second.previous_term, previous_term) << "before " << entry.term << "/" << entry.index;
    EXPECT_TRUE(first->second.data == entry.data || *first->second.data == *entry.data) << entry.index;
  }
}

// Election safety, and leader completeness: it has everything that was decided before its term.
void TestCluster::check_leader(uint64_t id) {
  const Node& leader = node(id);
  const auto [first, fresh] = leaders_.try_emplace(leader.term(), id);
  EXPECT_EQ(first->second, id) << "two leaders in term " << leader.term();
  for (const Decided& decided : decided_) {
    if (decided.term >= leader.term() || decided.entry.index < leader.log().base_index()) continue;
    EXPECT_EQ(leader.log().term_at(decided.entry.index), decided.entry.term) << "index " << decided.entry.index;
  }
}

void TestCluster::check_read(const ReadState& read) {
  answered_reads[read.context] = read.index;
  if (const auto asked = reads_.find(read.context); asked != reads_.end()) {
    EXPECT_GE(read.index, asked->second) << "read " << read.context << " would miss what was answered before it";
  }
}

// State machine safety: no two members apply different entries at one index.
void TestCluster::decide(uint64_t id, const LogEntry& entry) {
  if (entry.index <= decided_.size()) {
    const LogEntry& before = decided(entry.index);
    EXPECT_EQ(before.term, entry.term) << "index " << entry.index;
    EXPECT_TRUE(before.data == entry.data || *before.data == *entry.data) << "index " << entry.index;
    return;
  }
  ASSERT_EQ(entry.index, decided_.size() + 1);
  const bool changes = entry.type == EntryType::kMembership;
  Membership membership = changes ? membership_of(*entry.data) : membership_at(decided_.size());
  decided_.push_back({entry, node(id).term(), std::move(membership)});
}

}  // namespace raft
