#include "sim/cluster_invariants.h"

#include <algorithm>

#include "mvcc/mvcc.h"

namespace sim {
namespace {

std::string number(uint64_t value) { return std::to_string(value); }

}  // namespace

void Invariants::fault(size_t node, const std::string& text) {
  cluster_.fault("member " + std::to_string(node) + ": " + text);
}

void Invariants::check(size_t node) {
  if (node == cluster_.size() || !cluster_.node(node).is_open()) return;
  ++checks_;
  Seen& seen = seen_[node];
  const member::Member::State state = cluster_.member(node).state();
  const uint64_t starts = cluster_.node(node).starts;
  if (seen.starts != starts) {  // what it had not synced is gone; its term is not
    seen = {.starts = starts, .term = seen.term};
    seen.raft.term = seen.term;
  }
  check_raft(node, seen, state.raft);
  check_applied(node, seen, state.published);
  seen.raft = state.raft;
  seen.published = state.published;
}

void Invariants::check_raft(size_t node, Seen& seen, const member::RaftStatus& raft) {
  if (raft.term < seen.raft.term)
    fault(node, "its term went from " + number(seen.raft.term) + " to " + number(raft.term));
  if (raft.commit_index < seen.raft.commit_index) fault(node, "its commit index went back");
  if (raft.applied_index > raft.commit_index) fault(node, "has applied what is not committed");
  if (raft.commit_index > raft.last_index) fault(node, "has committed what it has not got");
  if (raft.role == raft::Role::kLeader) {
    const auto [at, is_new] = leaders_.emplace(raft.term, node);
    if (at->second != node) {
      fault(node, "leads term " + number(raft.term) + ", and so does member " + std::to_string(at->second));
    }
    if (is_new && raft.term > committed_term_ && raft.last_index < committed_) {
      fault(node, "leads term " + number(raft.term) + " with a log up to " + number(raft.last_index) +
                      "; committed is " + number(committed_));
    }
    // A term that was led was voted for, and whoever leads it has remembered that.
    seen.term = std::max(seen.term, raft.term);
  }
  if (raft.commit_index > committed_) {
    committed_ = raft.commit_index;
    committed_term_ = std::max(committed_term_, raft.term);
  }
}

void Invariants::check_applied(size_t node, Seen& seen, const mvcc::Published& published) {
  if (published.applied_index == seen.published.applied_index) return;
  if (published.applied_index < seen.published.applied_index) fault(node, "its applied index went back");
  if (published.revision < seen.published.revision) fault(node, "its revision went back");
  if (published.compacted < seen.published.compacted) fault(node, "its compacted revision went back");
  const Applied mine{published.applied_term, published.revision, published.compacted, node};
  auto [at, is_new] = applied_.emplace(published.applied_index, mine);
  Applied& first = at->second;
  const std::string where =
      "at applied index " + number(published.applied_index) + ", against member " + std::to_string(first.node) + ": ";
  if (first.term != mine.term) fault(node, where + "term " + number(mine.term) + ", not " + number(first.term));
  if (first.revision != mine.revision) {
    fault(node, where + "revision " + std::to_string(mine.revision) + ", not " + std::to_string(first.revision));
  }
  if (first.compacted != mine.compacted) fault(node, where + "another compacted revision");
  if (published.applied_index % kContentEvery == 0) {
    const auto content = content_of(node);
    if (!first.content) {
      first.content = content;
    } else if (content && first.node != node) {
      ++contents_compared_;
      if (*content != *first.content) fault(node, where + "another content");
    }
  }
  while (applied_.size() > kAppliedKept) applied_.erase(applied_.begin());
}

// Of what is published; nothing when that cannot be read.
std::optional<uint64_t> Invariants::content_of(size_t node) {
  const auto reader = cluster_.member(node).reader();
  etcdserverpb::RangeRequest request;
  request.set_key(std::string(1, '\0'));
  request.set_range_end(std::string(1, '\0'));
  etcdserverpb::RangeResponse response;
  if (!reader->range(request, &response)) return std::nullopt;
  uint64_t sum = 0;
  for (const auto& kv : response.kvs()) {
    mvcc::KeyValue one;
    one.key = kv.key();
    one.value = kv.value();
    one.create_revision = kv.create_revision();
    one.mod_revision = kv.mod_revision();
    one.version = kv.version();
    one.lease = kv.lease();
    sum += mvcc::content_hash_of(one);
  }
  return sum;
}

void Invariants::check_equal() {
  std::optional<size_t> first;
  for (size_t i = 0; i < cluster_.size(); ++i) {
    if (!cluster_.is_up(i)) continue;
    if (!first) {
      first = i;
      continue;
    }
    const auto a = cluster_.member(*first).state().published;
    const auto b = cluster_.member(i).state().published;
    if (a.applied_index != b.applied_index || a.revision != b.revision || content_of(*first) != content_of(i)) {
      fault(i, "does not end up as member " + std::to_string(*first));
    }
  }
  if (first && cluster_.member(*first).state().published.revision < acknowledged_) {
    fault(*first, "ends at revision " + std::to_string(cluster_.member(*first).state().published.revision) +
                      ", revision " + std::to_string(acknowledged_) + " was acknowledged");
  }
}

}  // namespace sim
