#include "sim/cluster_clients.h"

#include <algorithm>

#include "mvcc/mvcc.h"

namespace sim {
namespace {

using history::Operation;
using history::Outcome;
using Kind = history::Request::Kind;

constexpr const char* kFrom = "k";  // the keys of these clients
constexpr const char* kTo = "l";

history::Answer answer_of(const etcdserverpb::RangeResponse& response) {
  history::Answer answer;
  for (const auto& kv : response.kvs()) answer.kvs.push_back(key_value_of(kv));
  return answer;
}
history::Answer answer_of(const etcdserverpb::PutResponse& response) {
  history::Answer answer;
  if (response.has_prev_kv()) answer.kvs.push_back(key_value_of(response.prev_kv()));
  return answer;
}
history::Answer answer_of(const etcdserverpb::DeleteRangeResponse& response) {
  history::Answer answer;
  for (const auto& kv : response.prev_kvs()) answer.kvs.push_back(key_value_of(kv));
  answer.deleted = response.deleted();
  return answer;
}
history::Answer answer_of(const etcdserverpb::ResponseOp& response) {
  if (response.has_response_put()) return answer_of(response.response_put());
  if (response.has_response_delete_range()) return answer_of(response.response_delete_range());
  return answer_of(response.response_range());
}

void fill(const history::Request& request, etcdserverpb::RangeRequest& out) {
  out.set_key(request.key);
  out.set_range_end(request.end);
  out.set_revision(request.revision);
}
void fill(const history::Request& request, etcdserverpb::PutRequest& out) {
  out.set_key(request.key);
  out.set_value(request.value);
  out.set_prev_kv(request.previous);
}
void fill(const history::Request& request, etcdserverpb::DeleteRangeRequest& out) {
  out.set_key(request.key);
  out.set_range_end(request.end);
  out.set_prev_kv(request.previous);
}
void fill(const history::Request& request, etcdserverpb::RequestOp& out) {
  if (request.kind == Kind::kPut) return fill(request, *out.mutable_request_put());
  if (request.kind == Kind::kDelete) return fill(request, *out.mutable_request_delete_range());
  fill(request, *out.mutable_request_range());
}

conclavepb::Entry command_of(const Operation& operation) {
  conclavepb::Entry command;
  if (operation.compares.empty() && operation.success.size() == 1) {
    const history::Request& request = operation.success[0];
    if (request.kind == Kind::kPut) {
      fill(request, *command.mutable_put());
    } else {
      fill(request, *command.mutable_delete_range());
    }
    return command;
  }
  auto& txn = *command.mutable_txn();
  for (const history::Compare& compare : operation.compares) {
    auto& out = *txn.add_compare();
    out.set_key(compare.key);
    out.set_result(etcdserverpb::Compare::EQUAL);
    if (compare.target == history::Compare::Target::kValue) {
      out.set_target(etcdserverpb::Compare::VALUE);
      out.set_value(compare.value);
    } else {
      out.set_target(etcdserverpb::Compare::MOD);
      out.set_mod_revision(compare.number);
    }
  }
  for (const history::Request& request : operation.success) fill(request, *txn.add_success());
  for (const history::Request& request : operation.failure) fill(request, *txn.add_failure());
  return command;
}

}  // namespace

std::optional<size_t> Clients::some_member() {
  const size_t node = cluster_.random.below(cluster_.size());
  return cluster_.is_up(node) ? std::optional(node) : std::nullopt;
}

void Clients::act() {
  give_up_the_late();
  const size_t client = cluster_.random.below(clients_.size());
  const auto node = some_member();
  if (clients_[client].busy || !node) return;
  if (compacts && cluster_.random.below(150) == 0) return compact();
  begin(client, *node);
}

void Clients::begin(size_t client, size_t node) {
  Client& one = clients_[client];
  if (one.id == 0) one.id = next_client_++;
  Operation operation{.client = one.id, .call = cluster_.clock.monotonic()};
  choose(client, operation);
  // A member that was restarted is another one: it may have lost what it had applied.
  operation.member = node * 1'000'000 + cluster_.node(node).starts;
  const uint64_t ticket = next_ticket_++;
  waiting_[ticket] = {client, node, record_.operations.size()};
  one.busy = true;
  record_.operations.push_back(operation);
  if (may_write(operation)) {
    send_write(ticket, node, operation);
  } else {
    send_read(ticket, node, operation);
  }
}

void Clients::choose(size_t client, Operation& operation) {
  SeededRandom& random = cluster_.random;
  const auto key = [&random] { return kFrom + std::to_string(random.below(kKeys)); };
  const auto put = [&](const std::string& to) {
    std::string value = "v" + std::to_string(next_value_++) + std::string(random.below(400), '.');
    return history::Request{.kind = Kind::kPut, .key = to, .value = std::move(value), .previous = random.below(4) == 0};
  };
  const std::string one = key();
  switch (random.below(13)) {
    case 0:
    case 1:
    case 2:
      operation.success = {put(one)};
      return;
    case 3:
    case 4:
      operation.success = {{.kind = Kind::kGet, .key = one}};
      return;
    case 5:
      operation.success = {{.kind = Kind::kGet, .key = kFrom, .end = kTo}};
      return;
    case 6:
      operation.success = {{.kind = Kind::kGet, .key = kFrom, .end = kTo}};
      operation.serializable = true;
      return;
    case 7:
      operation.success = {{.kind = Kind::kDelete, .key = one, .previous = random.below(2) == 0}};
      return;
    case 8: {
      const std::string other = key();
      operation.success = {put(one)};
      if (other != one) operation.success.push_back(put(other));
      operation.success.push_back({.kind = Kind::kGet, .key = one});
      return;
    }
    case 9:
      return choose_old_read(operation);
    default: {
      history::Compare compare{.key = one};
      const auto& seen = clients_[client].seen;
      const auto last = seen.find(one);
      if (last != seen.end() && random.below(2) == 0) {
        compare.target = history::Compare::Target::kValue;
        compare.value = last->second.value;
      } else {
        compare.number = last != seen.end() ? last->second.mod_revision : 0;
      }
      operation.compares = {compare};
      operation.success = {put(one)};
      operation.failure = {{.kind = Kind::kGet, .key = one}};
    }
  }
}

// Often of the compacted revision itself: there shows what a compaction took that it had to leave.
void Clients::choose_old_read(Operation& operation) {
  SeededRandom& random = cluster_.random;
  const auto later = static_cast<uint64_t>(std::max<int64_t>(known_ - compacted_, 0));
  const int64_t revision = compacted_ + static_cast<int64_t>(random.below(2) * random.below(later + 1));
  operation.success = {{.kind = Kind::kGet, .key = kFrom, .end = kTo, .revision = revision}};
  operation.serializable = random.below(2) == 0;
}

void Clients::send_write(uint64_t ticket, size_t node, const Operation& operation) {
  cluster_.member(node).propose(command_of(operation), [this, ticket](Result<apply::Message> done) {
    if (done) {
      answered(ticket, **done);
    } else {
      refused(ticket, done.error());
    }
  });
}

void Clients::send_read(uint64_t ticket, size_t node, const Operation& operation) {
  if (operation.serializable) return read_now(ticket, node);
  cluster_.member(node).linearize([this, ticket, node](const Status& may) {
    if (may) {
      read_now(ticket, node);
    } else {
      refused(ticket, may.error());
    }
  });
}

void Clients::read_now(uint64_t ticket, size_t node) {
  const auto waiting = waiting_.find(ticket);
  if (waiting == waiting_.end()) return;
  etcdserverpb::RangeRequest request;
  fill(record_.operations[waiting->second.operation].success[0], request);
  const auto reader = cluster_.member(node).reader();
  etcdserverpb::RangeResponse response;
  if (auto read = reader->range(request, &response); !read) return refused(ticket, read.error());
  response.mutable_header()->set_revision(reader->at().revision);
  answered(ticket, response);
}

void Clients::answered(uint64_t ticket, const google::protobuf::Message& response) {
  const auto waiting = waiting_.find(ticket);
  if (waiting == waiting_.end()) return;  // given up meanwhile
  Operation& operation = record_.operations[waiting->second.operation];
  if (const auto* put = dynamic_cast<const etcdserverpb::PutResponse*>(&response)) {
    operation.revision = put->header().revision();
    operation.answers.push_back(answer_of(*put));
  } else if (const auto* erased = dynamic_cast<const etcdserverpb::DeleteRangeResponse*>(&response)) {
    operation.revision = erased->header().revision();
    operation.answers.push_back(answer_of(*erased));
  } else if (const auto* range = dynamic_cast<const etcdserverpb::RangeResponse*>(&response)) {
    operation.revision = range->header().revision();
    operation.answers.push_back(answer_of(*range));
  } else if (const auto* txn = dynamic_cast<const etcdserverpb::TxnResponse*>(&response)) {
    operation.revision = txn->header().revision();
    operation.succeeded = txn->succeeded();
    for (const auto& part : txn->responses()) operation.answers.push_back(answer_of(part));
  } else {
    return cluster_.fault("an answer of another kind: " + response.GetTypeName());
  }
  known_ = std::max(known_, operation.revision);
  auto& seen = clients_[waiting->second.client].seen;
  for (size_t i = 0; i < operation.answers.size() && i < operation.taken().size(); ++i) {
    if (operation.taken()[i].revision != 0) continue;
    for (const history::KeyValue& kv : operation.answers[i].kvs) seen[kv.key] = kv;
  }
  for (const history::Request& request : operation.taken()) {
    if (request.kind != Kind::kPut) continue;
    seen[request.key] = {.key = request.key, .value = request.value, .mod_revision = operation.revision};
  }
  if (!operation.serializable) invariants_.acknowledged(operation.revision);
  ++acknowledged_;
  finish(ticket, Outcome::kOk);
}

void Clients::refused(uint64_t ticket, const Error& error) { finish(ticket, outcome_of(error)); }

void Clients::finish(uint64_t ticket, Outcome outcome) {
  const auto waiting = waiting_.find(ticket);
  if (waiting == waiting_.end()) return;
  Operation& operation = record_.operations[waiting->second.operation];
  operation.outcome = outcome;
  if (outcome != Outcome::kUnknown) operation.returned = cluster_.clock.monotonic();
  Client& client = clients_[waiting->second.client];
  client.busy = false;
  if (outcome == Outcome::kUnknown) client.id = 0;  // its request may still be under way: it goes on as another one
  waiting_.erase(waiting);
}

void Clients::member_down(size_t node) {
  std::vector<uint64_t> lost;
  for (const auto& [ticket, waiting] : waiting_) {
    if (waiting.node == node) lost.push_back(ticket);
  }
  for (const uint64_t ticket : lost) finish(ticket, Outcome::kUnknown);
}

void Clients::give_up_the_late() {
  std::vector<uint64_t> late;
  for (const auto& [ticket, waiting] : waiting_) {
    if (record_.operations[waiting.operation].call + kPatience > cluster_.clock.monotonic()) break;  // in their order
    late.push_back(ticket);
  }
  for (const uint64_t ticket : late) finish(ticket, Outcome::kUnknown);
}

bool Clients::learn_events() {
  std::optional<size_t> best;
  int64_t revision = 0;
  for (size_t i = 0; i < cluster_.size(); ++i) {
    if (!cluster_.is_up(i)) continue;
    const int64_t has = cluster_.member(i).state().published.revision;
    if (best && has <= revision) continue;
    best = i;
    revision = has;
  }
  if (!best) return false;
  if (revision <= events_until_) return true;
  const auto reader = cluster_.member(*best).reader();
  const int64_t until = reader->at().revision;
  const Status read = read_events(*reader, events_until_ + 1, until, events_);
  if (!read) {
    cluster_.fault("history of member " + std::to_string(*best) + ": " + read.error().message);
    return false;
  }
  events_until_ = until;
  return true;
}

// Of what is learnt, so that nothing is lost to the checks at the end.
void Clients::compact() {
  const auto node = some_member();
  if (!node || !learn_events() || events_until_ < 10) return;
  conclavepb::Entry command;
  const int64_t revision = events_until_ - static_cast<int64_t>(cluster_.random.below(8));
  compacted_ = std::max(compacted_, revision);
  command.mutable_compaction()->set_revision(revision);
  command.mutable_compaction()->set_physical(cluster_.random.below(2) == 0);
  cluster_.member(*node).propose(std::move(command), [](const Result<apply::Message>&) {});
}

}  // namespace sim
