#include "history/revision_check.h"

#include <algorithm>

#include "history/attribution.h"
#include "history/revision_state.h"

namespace history {
namespace {

// The highest revision of what had ended when an operation began.
class Ended {
 public:
  void note(const Operation& operation) {
    if (highest_ == nullptr || operation.revision > highest_->revision) highest_ = &operation;
    const Operation*& at_member = by_member_[operation.member];
    if (at_member == nullptr || operation.revision > at_member->revision) at_member = &operation;
  }
  const Operation* highest() const { return highest_; }
  const Operation* highest(uint64_t member) const {
    const auto found = by_member_.find(member);
    return found == by_member_.end() ? nullptr : found->second;
  }

 private:
  const Operation* highest_ = nullptr;
  std::map<uint64_t, const Operation*> by_member_;
};

Verdict misplaced(const std::string& what, const Operation& earlier, const Operation& later) {
  return violation(what + ":\n  " + describe(earlier) + "\n  " + describe(later) + "\n");
}

// What began: an answered operation, or one without an answer that happened at this revision all the same.
struct Begun {
  const Operation* operation = nullptr;
  int64_t revision = 0;
  bool writes = false;
};

Verdict check_real_time(const std::vector<Operation>& operations, const Attribution& attribution) {
  std::vector<Begun> calls;
  std::vector<const Operation*> returns;
  for (const Operation& operation : operations) {
    if (operation.outcome != Outcome::kOk || operation.revision == 0) continue;
    calls.push_back({&operation, operation.revision, wrote(operation)});
    returns.push_back(&operation);
  }
  for (const auto& [revision, written] : attribution.writes) {
    if (written.operation->outcome != Outcome::kOk) calls.push_back({written.operation, revision, true});
  }
  std::stable_sort(calls.begin(), calls.end(),
                   [](const Begun& a, const Begun& b) { return a.operation->call < b.operation->call; });
  std::stable_sort(returns.begin(), returns.end(),
                   [](const Operation* a, const Operation* b) { return a->returned < b->returned; });
  Ended ended;
  size_t next = 0;
  for (const Begun& begun : calls) {
    const Operation& operation = *begun.operation;
    while (next < returns.size() && returns[next]->returned < operation.call) ended.note(*returns[next++]);
    if (operation.serializable) {
      const Operation* before = ended.highest(operation.member);
      if (before != nullptr && begun.revision < before->revision) {
        return misplaced("a member's state went back", *before, operation);
      }
      continue;
    }
    const Operation* before = ended.highest();
    if (before == nullptr) continue;
    if (begun.writes && begun.revision <= before->revision) {
      return misplaced(
          "a write at revision " + std::to_string(begun.revision) + " began after a later revision was known", *before,
          operation);
    }
    if (begun.revision < before->revision) return misplaced("an answer older than what was known", *before, operation);
  }
  return {};
}

struct Read {
  int64_t revision = 0;
  const Operation* operation = nullptr;
  size_t request = 0;  // of an old revision: this one; else all
  bool old = false;
};

std::vector<Read> reads_of(const std::vector<Operation>& operations) {
  std::vector<Read> reads;
  for (const Operation& operation : operations) {
    if (operation.outcome != Outcome::kOk || operation.revision == 0) continue;
    if (!wrote(operation)) reads.push_back({operation.revision, &operation});
    for (size_t i = 0; i < operation.taken().size() && i < operation.answers.size(); ++i) {
      const Request& request = operation.taken()[i];
      if (request.kind == Request::Kind::kGet && request.revision != 0) {
        reads.push_back({request.revision, &operation, i, true});
      }
    }
  }
  std::stable_sort(reads.begin(), reads.end(), [](const Read& a, const Read& b) { return a.revision < b.revision; });
  return reads;
}

class Walk {
 public:
  Walk(const Attribution& attribution, const Events* events)
      : attribution_(attribution), events_(events), state_(events != nullptr, attribution.open) {
    if (events_ != nullptr) event_ = events_->begin();
    write_ = attribution_.writes.begin();
    unowned_ = attribution_.unowned.begin();
  }

  // Everything up to `revision` has happened then.
  RevisionState::Fault move_to(int64_t revision) {
    while (true) {
      int64_t next = revision + 1;
      if (write_ != attribution_.writes.end()) next = std::min(next, write_->first);
      if (unowned_ != attribution_.unowned.end()) next = std::min(next, unowned_->first);
      if (events_ != nullptr && event_ != events_->end()) next = std::min(next, event_->first);
      if (next > revision) return std::nullopt;
      const bool has_events = events_ != nullptr && event_ != events_->end() && event_->first == next;
      const bool owned = write_ != attribution_.writes.end() && write_->first == next;
      if (owned) {
        if (auto fault = state_.write(next, write_->second, has_events ? &event_->second : nullptr)) return fault;
        ++write_;
      }
      if (unowned_ != attribution_.unowned.end() && unowned_->first == next) {
        for (const auto& [key, kv] : unowned_->second) state_.put_unowned(kv);
        ++unowned_;
      }
      if (!has_events) continue;
      if (auto fault = state_.apply_events(event_->second, owned)) return fault;
      ++event_;
    }
  }
  RevisionState::Fault read(const Read& read) {
    return read.old ? state_.read_old(*read.operation, read.request) : state_.read(*read.operation);
  }

 private:
  const Attribution& attribution_;
  const Events* events_;
  RevisionState state_;
  Events::const_iterator event_;
  std::map<int64_t, Written>::const_iterator write_;
  std::map<int64_t, std::map<std::string, KeyValue>>::const_iterator unowned_;
};

}  // namespace

Verdict check_revisions(const std::vector<Operation>& operations, const Events* events) {
  const Attribution attribution = attribute(operations, events);
  if (!attribution.verdict.ok()) return attribution.verdict;
  if (Verdict verdict = check_real_time(operations, attribution); !verdict.ok()) return verdict;
  Walk walk(attribution, events);
  int64_t last = 0;
  for (const Read& read : reads_of(operations)) {
    if (auto fault = walk.move_to(read.revision)) return violation(*fault);
    if (auto fault = walk.read(read)) return violation(*fault);
    last = read.revision;
  }
  int64_t end = last;
  if (!attribution.writes.empty()) end = std::max(end, attribution.writes.rbegin()->first);
  if (events != nullptr && !events->empty()) end = std::max(end, events->rbegin()->first);
  if (auto fault = walk.move_to(end)) return violation(*fault);
  return {};
}

}  // namespace history
