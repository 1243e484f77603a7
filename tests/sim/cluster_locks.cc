#include "sim/cluster_locks.h"

#include <algorithm>

#include "sim/cluster_clients.h"
#include "sim/cluster_sessions.h"

namespace sim {
namespace {

constexpr const char* kLock = "a";
constexpr const char* kPrefix = "lock/a/";
constexpr const char* kPrefixEnd = "lock/a0";
constexpr const char* kProtected = "fenced/a";

}  // namespace

size_t LockClients::begin(const Client& client, history::LeaseCall::Kind kind) {
  return begin_lease_call(record_, {.kind = kind, .lease = client.lease, .client = 600, .call = now()});
}

void LockClients::end(size_t call, history::Outcome outcome, int64_t ttl) {
  end_lease_call(record_, call, outcome, ttl, now());
}

uint64_t LockClients::ask(size_t place, size_t node) {
  Client& client = clients_[place];
  client.busy = true;
  client.node = node;
  return client.request = next_request_++;
}

LockClients::Client* LockClients::answered(size_t place, uint64_t request) {
  Client& client = clients_[place];
  if (client.request != request) return nullptr;
  client.busy = false;
  return &client;
}

// With a new lease: whatever is left of the old one runs out.
void LockClients::start_over(Client& client) {
  if (client.hold != 0) {
    history::LockHold& hold = record_.holds[client.hold - 1];
    hold.until = std::min({hold.until, now(), client.alive_until});
  }
  client = {.request = next_request_++};
}

void LockClients::member_down(size_t node) {
  for (Client& client : clients_) {
    if (client.busy && client.node == node) start_over(client);
  }
}

void LockClients::act() {
  SeededRandom& random = cluster_.random;
  const size_t place = random.below(clients_.size());
  const size_t node = random.below(cluster_.size());
  Client& client = clients_[place];
  if (is_lost(client)) return start_over(client);
  if (!cluster_.is_up(node) || client.busy) return;
  const bool renewal_due = client.lease != 0 && client.at != At::kGranting &&
                           now() - client.renewal_sent > std::chrono::seconds(kTtlSeconds) / 3;
  if (renewal_due && random.below(3) > 0) return renew(place, node);
  switch (client.at) {
    case At::kNothing:
      if (!stopped_ && random.below(8) == 0) grant(place, node);
      return;
    case At::kGranting:
      return;
    case At::kEntering:
      return enter(place, node);
    case At::kWaiting:
      return look(place, node);
    case At::kHolding:
      if (stopped_ || random.below(6) == 0) return leave(place, node);
      return use(place, node);
    case At::kLeaving:
      return;
  }
}

void LockClients::grant(size_t place, size_t node) {
  Client& client = clients_[place];
  client.at = At::kGranting;
  client.lease = next_lease_++;
  client.renewal_sent = now();
  client.alive_until = now() + std::chrono::seconds(kTtlSeconds);
  conclavepb::Entry command;
  command.mutable_lease_grant()->set_id(client.lease);
  command.mutable_lease_grant()->set_ttl(kTtlSeconds);
  const uint64_t request = ask(place, node);
  const size_t call = begin(client, history::LeaseCall::Kind::kGrant);
  cluster_.member(node).propose(std::move(command), [this, place, request, call](const Result<apply::Message>& done) {
    end(call, done ? history::Outcome::kOk : outcome_of(done.error()), done ? kTtlSeconds : 0);
    Client* client = answered(place, request);
    if (client == nullptr) return;
    if (!done) return start_over(*client);
    client->at = At::kEntering;
  });
}

// Beside whatever else the client does: an answer that comes late still counts from when it was sent.
void LockClients::renew(size_t place, size_t node) {
  Client& client = clients_[place];
  client.renewal_sent = now();
  const size_t call = begin(client, history::LeaseCall::Kind::kKeepAlive);
  cluster_.member(node).keep_alive(
      client.lease, [this, place, call, lease = client.lease, sent = client.renewal_sent](const Result<int64_t>& ttl) {
        end(call, ttl ? history::Outcome::kOk : history::Outcome::kUnknown, ttl ? *ttl : 0);
        Client& client = clients_[place];
        if (!ttl || *ttl == 0 || client.lease != lease) return;
        client.alive_until = std::max(client.alive_until, sent + std::chrono::seconds(kTtlSeconds));
      });
}

void LockClients::enter(size_t place, size_t node) {
  const Client& client = clients_[place];
  conclavepb::Entry command;
  auto& txn = *command.mutable_txn();
  auto& compare = *txn.add_compare();
  compare.set_key(key_of(client));
  compare.set_target(etcdserverpb::Compare::CREATE);
  compare.set_result(etcdserverpb::Compare::EQUAL);
  compare.set_create_revision(0);
  auto& put = *txn.add_success()->mutable_request_put();
  put.set_key(key_of(client));
  put.set_lease(client.lease);
  txn.add_failure()->mutable_request_range()->set_key(key_of(client));
  const uint64_t request = ask(place, node);
  cluster_.member(node).propose(std::move(command), [this, place, request](const Result<apply::Message>& done) {
    Client* client = answered(place, request);
    if (client == nullptr) return;
    if (!done) {
      // Not known whether the key is there: asked again, the transaction tells.
      if (outcome_of(done.error()) == history::Outcome::kFailed) start_over(*client);
      return;
    }
    const auto& txn = static_cast<const etcdserverpb::TxnResponse&>(**done);
    client->token =
        txn.succeeded() ? txn.header().revision() : txn.responses(0).response_range().kvs(0).create_revision();
    client->at = At::kWaiting;
  });
}

void LockClients::look(size_t place, size_t node) {
  const uint64_t request = ask(place, node);
  cluster_.member(node).linearize([this, place, node, request](const Status& may) {
    Client* client = answered(place, request);
    if (client == nullptr || !may) return;
    etcdserverpb::RangeRequest range;
    range.set_key(kPrefix);
    range.set_range_end(kPrefixEnd);
    etcdserverpb::RangeResponse response;
    if (!cluster_.member(node).reader()->range(range, &response)) return;
    int64_t lowest = 0;
    bool is_there = false;
    for (const auto& kv : response.kvs()) {
      if (lowest == 0 || kv.create_revision() < lowest) lowest = kv.create_revision();
      is_there |= kv.create_revision() == client->token;
    }
    if (!is_there) return start_over(*client);  // its lease ended
    if (lowest != client->token || is_lost(*client)) return;
    client->at = At::kHolding;
    record_.holds.push_back({.lock = kLock, .client = place + 1, .token = client->token, .acquired = now()});
    client->hold = record_.holds.size();
  });
}

// A write that only the holder may make: it compares the holder's key.
void LockClients::use(size_t place, size_t node) {
  const Client& client = clients_[place];
  conclavepb::Entry command;
  auto& txn = *command.mutable_txn();
  auto& compare = *txn.add_compare();
  compare.set_key(key_of(client));
  compare.set_target(etcdserverpb::Compare::CREATE);
  compare.set_result(etcdserverpb::Compare::EQUAL);
  compare.set_create_revision(client.token);
  auto& put = *txn.add_success()->mutable_request_put();
  put.set_key(kProtected);
  put.set_value(std::to_string(client.token) + "/" + std::to_string(next_request_));
  const int64_t token = client.token;
  const uint64_t request = ask(place, node);
  cluster_.member(node).propose(std::move(command), [this, place, request, token](const Result<apply::Message>& done) {
    if (done) {
      const auto& txn = static_cast<const etcdserverpb::TxnResponse&>(**done);
      if (txn.succeeded()) uses_.push_back({txn.header().revision(), place + 1, token});
    }
    answered(place, request);
  });
}

void LockClients::leave(size_t place, size_t node) {
  Client& client = clients_[place];
  record_.holds[client.hold - 1].until = std::min(now(), client.alive_until);
  client.hold = 0;
  client.at = At::kLeaving;
  conclavepb::Entry command;
  command.mutable_lease_revoke()->set_id(client.lease);
  const uint64_t request = ask(place, node);
  const size_t call = begin(client, history::LeaseCall::Kind::kRevoke);
  cluster_.member(node).propose(std::move(command), [this, place, request, call](const Result<apply::Message>& done) {
    end(call, done ? history::Outcome::kOk : outcome_of(done.error()), 0);
    if (Client* client = answered(place, request)) start_over(*client);
  });
}

void LockClients::finish() {
  for (Client& client : clients_) start_over(client);
  std::sort(uses_.begin(), uses_.end(), [](const Use& a, const Use& b) { return a.revision < b.revision; });
  for (const Use& use : uses_) record_.uses.push_back({kLock, use.client, use.token});
}

}  // namespace sim
