#include "hold.h"

#include <utility>

#include "codec.h"
#include "random.h"
#include "removal.h"
#include "watch_core.h"

namespace conclave::inline v1::internal {

LockName::LockName(std::string given, LeaseId lease)
    : name(std::move(given)), range(name + "/"), key(range + hex(static_cast<std::uint64_t>(number(lease)))) {}

Hold::Hold(std::shared_ptr<SessionCore> session, LockName name, LocalQueue::Ticket ticket)
    : session_(std::move(session)), name_(std::move(name)), ticket_(ticket) {}

Hold::~Hold() {
  if (sent_ && !removed_) {
    remove_in_background(session_, name_, ticket_, removal(), revision_ == 0);
  } else {
    session_->queue().leave(name_.name, ticket_);
  }
}

Status Hold::lost_error() const { return fail(Code::kAborted, "the session is lost: " + session_->why()); }

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
  } else if (existing != nullptr && !existing->kvs.empty()) {
    revision_ = number(existing->kvs.front().create_revision);
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
      .then(op::put(name_.key, "", {.lease = session_->lease()}), oldest)
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
      .then(op::put(name_.key, "", {.lease = session_->lease()}))
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
    return fail(Code::kAborted, name_.key + " was removed while it waited for the lock");
  }
  at = result->revision;
  const auto* range = result->results.empty() ? nullptr : result->results.front().range();
  if (range == nullptr) return fail(Code::kInternal, "the server's answer has no range");
  if (range->kvs.empty()) return std::optional<KeyValue>();
  const KeyValue& older = range->kvs.front();
  if (older.key.find('/', name_.range.size()) != std::string::npos)
    return fail(Code::kFailedPrecondition, older.key + " belongs to a name below " + name_.name);
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
  if (removed_) return fail(Code::kAborted, "the lock was given back");
  if (!session_->held()) return fail(lost_error().error());
  Core& core = session_->core();
  auto outer = encode_txn(Txn().when(compare::create_revision(name_.key) == revision_).then(op::txn(txn)), core.keys());
  auto reply = core.call(path::kTxn, std::move(outer), Effect::kOnce, call);
  if (!reply) return fail(std::move(reply.error()));
  auto result = decode_txn(reply->json, core.keys());
  if (!result) return result;
  if (!result->succeeded) return fail(Code::kAborted, "the lock was lost: " + name_.key + " is gone");
  const TxnResult* inner = result->results.empty() ? nullptr : result->results.front().txn();
  if (inner == nullptr)
    return fail(Code::kInternal, "the server's answer has no transaction", Outcome::kMayHaveHappened);
  return *inner;
}

Txn Hold::removal() const {
  Txn txn;
  if (revision_ != 0) txn.when(compare::create_revision(name_.key) == revision_);
  txn.then(op::del(name_.key));
  return txn;
}

Status Hold::remove(const CallOptions& call) {
  if (removed_) return fail(Code::kAborted, "the lock was given back");
  if (!session_->held()) return lost_error();
  Core& core = session_->core();
  auto reply = core.call(path::kTxn, encode_txn(removal(), core.keys()), Effect::kIdempotent, call);
  if (!reply) return fail(std::move(reply.error()));
  removed_ = true;
  // After an attempt without answer, "gone" is most likely our own doing.
  if (reply->json["succeeded"].boolean() || reply->uncertain) return {};
  return fail(Code::kAborted, "the lock was lost before: " + name_.key + " is gone");
}

}  // namespace conclave::inline v1::internal
