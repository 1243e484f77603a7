#include "hold.h"

#include <utility>

#include "codec.h"
#include "random.h"
#include "removal.h"
#include "watch_core.h"

namespace conclave::inline v1::internal {

LockName::LockName(std::string given, LeaseId lease)
    : name(std::move(given)), range(name + "/"), key(range + hex(static_cast<std::uint64_t>(number(lease)))) {}

Status check_not_below(const LockName& name, const std::string& key) {
  if (key.find('/', name.range.size()) == std::string::npos) return {};
  return fail(Code::kFailedPrecondition, key + " belongs to a name below " + name.name);
}

Hold::Hold(std::shared_ptr<SessionCore> session, LockName name, LocalQueue::Ticket ticket, HoldKind kind,
           std::string value)
    : session_(std::move(session)), name_(std::move(name)), ticket_(ticket), kind_(kind), value_(std::move(value)) {}

Hold::~Hold() {
  if (sent_ && !removed_) {
    remove_in_background(session_, name_, ticket_, removal(), revision_ == 0);
  } else {
    session_->queue().leave(name_.name, ticket_);
  }
}

Status Hold::lost_error() const { return fail(Code::kAborted, "the session is lost: " + session_->why()); }

Status Hold::aborted(const char* what) const {
  return fail(Code::kAborted, std::string(kind_ == HoldKind::kLock ? "the lock " : "the leadership ") + what);
}

// Every transaction here may run twice: the key is this session's alone, and the session has one user of it at a time.
Result<TxnResult> Hold::run(const Txn& txn, TimePoint deadline, const std::stop_token& stop) {
  auto body = encode_txn(txn, session_->core().keys());
  if (!body) return fail(std::move(body.error()));
  sent_ = true;
  auto reply = session_->core().call({.path = path::kTxn,
                                      .body = body->dump(),
                                      .effect = Effect::kIdempotent,
                                      .deadline = deadline,
                                      .attempt_max = session_->core().call_timeout(),
                                      .budgeted = false},
                                     stop);
  if (session_->lost().stop_requested() || (!session_->held() && !reply)) return fail(lost_error().error());
  if (!reply) {
    if (reply.error().code == Code::kNotFound) session_->lose("the server says: " + reply.error().message, false);
    return fail(std::move(reply.error()));
  }
  return decode_txn(reply->json, session_->core().keys());
}

// The key's create revision is its place: of this transaction, or of an earlier attempt whose answer did not arrive.
Status Hold::created(const TxnResult& result) {
  const auto* existing = result.results.empty() ? nullptr : result.results.front().range();
  if (result.succeeded) {
    revision_ = number(result.revision);
    mod_ = revision_;
  } else if (existing != nullptr && !existing->kvs.empty()) {
    revision_ = number(existing->kvs.front().create_revision);
    mod_ = number(existing->kvs.front().mod_revision);
  }
  if (revision_ == 0) return fail(Code::kInternal, "the server's answer has no key");
  return {};
}

Status Hold::enqueue(TimePoint deadline, const std::stop_token& stop) {
  const auto oldest = op::range({.key = name_.range,
                                 .prefix = true,
                                 .limit = 1,
                                 .order = SortOrder::kAscend,
                                 .sort_by = SortTarget::kCreate,
                                 .keys_only = true});
  Txn txn;
  txn.when(compare::missing(name_.key))
      .then(op::put(name_.key, value_, {.lease = session_->lease()}), oldest)
      .otherwise(op::get(name_.key), oldest);
  auto result = run(txn, deadline, stop);
  if (!result) return fail(std::move(result.error()));
  if (auto known = created(*result); !known) return known;
  const auto* range = result->results.size() < 2 ? nullptr : result->results[1].range();
  alone_ = range != nullptr && !range->kvs.empty() && number(range->kvs.front().create_revision) == revision_;
  return {};
}

Result<bool> Hold::enqueue_if_alone(TimePoint deadline, const std::stop_token& stop) {
  Txn txn;
  txn.when(compare::create_revision(name_.range).all_with_prefix() == 0)
      .then(op::put(name_.key, value_, {.lease = session_->lease()}))
      .otherwise(op::get(name_.key));
  auto result = run(txn, deadline, stop);
  if (!result) return fail(std::move(result.error()));
  const auto* own = result->succeeded || result->results.empty() ? nullptr : result->results.front().range();
  if (!result->succeeded && (own == nullptr || own->kvs.empty())) {
    sent_ = false;  // no key of ours
    return false;
  }
  if (auto known = created(*result); !known) return fail(std::move(known.error()));
  return true;
}

// The next older key, read together with the proof that ours still exists: the lease is alive at that revision.
Result<std::optional<KeyValue>> Hold::predecessor(TimePoint deadline, const std::stop_token& stop, Revision& at) {
  Txn txn;
  txn.when(compare::create_revision(name_.key) == revision_)
      .then(op::range({.key = name_.range,
                       .prefix = true,
                       .limit = 1,
                       .order = SortOrder::kDescend,
                       .sort_by = SortTarget::kCreate,
                       .max_create_revision = Revision{revision_ - 1}}));
  auto result = run(txn, deadline, stop);
  if (!result) return fail(std::move(result.error()));
  if (!result->succeeded) {
    removed_ = true;
    session_->check_now();
    return fail(Code::kAborted, name_.key + " was removed while it waited in the queue");
  }
  at = result->revision;
  const auto* range = result->results.empty() ? nullptr : result->results.front().range();
  if (range == nullptr) return fail(Code::kInternal, "the server's answer has no range");
  if (range->kvs.empty()) return std::optional<KeyValue>();
  const KeyValue& older = range->kvs.front();
  if (auto checked = check_not_below(name_, older.key); !checked) return fail(std::move(checked.error()));
  return std::optional<KeyValue>(older);
}

Status Hold::wait_for_removal(const std::string& key, Revision from, TimePoint deadline, const std::stop_token& stop) {
  const auto watch = std::make_shared<WatchCore>(session_->core().shared_from_this(),
                                                 WatchOptions{.key = key, .from = from, .puts = false});
  watch->start();
  auto batch = watch->next(deadline, stop);  // a removal, or a gap: either way it is time to look again
  watch->end({.code = Code::kCancelled, .message = "no longer waited for"});
  if (batch) return {};
  if (session_->lost().stop_requested()) return lost_error();
  return fail(std::move(batch.error()));
}

Status Hold::wait_turn(TimePoint deadline, const std::stop_token& stop) {
  while (!alone_) {
    Revision at{};
    auto older = predecessor(deadline, stop, at);
    if (!older) return fail(std::move(older.error()));
    alone_ = !older->has_value();
    if (alone_) break;
    if (auto gone = wait_for_removal((*older)->key, Revision{number(at) + 1}, deadline, stop); !gone) return gone;
  }
  if (!session_->held()) return lost_error();
  return {};
}

Result<TxnResult> Hold::commit(const Txn& txn, const CallOptions& call) const {
  if (removed_) return fail(aborted("was given back").error());
  if (!session_->held()) return fail(lost_error().error());
  Core& core = session_->core();
  auto outer = encode_txn(Txn().when(compare::create_revision(name_.key) == revision_).then(op::txn(txn)), core.keys());
  auto reply = core.call(path::kTxn, std::move(outer), Effect::kOnce, call);
  if (!reply) return fail(std::move(reply.error()));
  auto result = decode_txn(reply->json, core.keys());
  if (!result) return result;
  if (!result->succeeded) return fail(aborted("was lost: its key is gone").error());
  const TxnResult* inner = result->results.empty() ? nullptr : result->results.front().txn();
  if (inner == nullptr)
    return fail(Code::kInternal, "the server's answer has no transaction", Outcome::kMayHaveHappened);
  return *inner;
}

// The key's last change is compared too: an attempt that arrives late never undoes a later one, and whether an
// unanswered one took effect is read back.
Status Hold::proclaim(const std::string& value, const CallOptions& call) {
  if (removed_) return aborted("was given back");
  if (call.stop.stop_requested()) return fail(Code::kCancelled, "stopped by the caller");
  Core& core = session_->core();
  const TimePoint deadline = deadline_of(call, core.call_timeout());
  bool uncertain = false;
  while (true) {
    if (!session_->held()) return lost_error();
    Txn txn;
    txn.when(compare::create_revision(name_.key) == revision_, compare::mod_revision(name_.key) == mod_)
        .then(op::put(name_.key, value, {.lease = session_->lease()}))
        .otherwise(op::get(name_.key));
    auto body = encode_txn(txn, core.keys());
    if (!body) return fail(std::move(body.error()));
    auto reply = core.call(
        {.path = path::kTxn, .body = body->dump(), .effect = Effect::kIdempotent, .deadline = deadline}, call.stop);
    if (!reply) return fail(std::move(reply.error()));
    uncertain = uncertain || reply->uncertain;
    auto result = decode_txn(reply->json, core.keys());
    if (!result) return fail(std::move(result.error()));
    if (result->succeeded) {
      mod_ = number(result->revision);
      return {};
    }
    const auto* now = result->results.empty() ? nullptr : result->results.front().range();
    if (now == nullptr || now->kvs.empty() || number(now->kvs.front().create_revision) != revision_) {
      auto lost = aborted("was lost: its key is gone");
      if (uncertain) lost.error().outcome = Outcome::kMayHaveHappened;
      return lost;
    }
    mod_ = number(now->kvs.front().mod_revision);
    if (now->kvs.front().value == value) return {};
  }
}

Txn Hold::removal() const {
  Txn txn;
  if (revision_ != 0) txn.when(compare::create_revision(name_.key) == revision_);
  txn.then(op::del(name_.key));
  return txn;
}

Status Hold::remove(const CallOptions& call) {
  if (removed_) return aborted("was given back");
  if (!session_->held()) return lost_error();
  Core& core = session_->core();
  auto reply = core.call(path::kTxn, encode_txn(removal(), core.keys()), Effect::kIdempotent, call);
  if (!reply) return fail(std::move(reply.error()));
  removed_ = true;
  // After an attempt without answer, "gone" is most likely our own doing.
  if (reply->json["succeeded"].boolean() || reply->uncertain) return {};
  return aborted("was lost before: its key is gone");
}

}  // namespace conclave::inline v1::internal
