#include "sim/cluster_sessions.h"

#include <algorithm>

#include "sim/cluster_clients.h"

namespace sim {

using history::Outcome;
using history::WatchItem;

size_t begin_lease_call(history::Record& record, history::LeaseCall call) {
  record.lease_calls.push_back(call);
  return record.lease_calls.size() - 1;
}

void end_lease_call(history::Record& record, size_t place, Outcome outcome, int64_t ttl, history::Time now) {
  history::LeaseCall& call = record.lease_calls[place];
  call.outcome = outcome;
  call.ttl_seconds = ttl;
  if (outcome != Outcome::kUnknown) call.returned = now;
}

void add_lease_sightings(history::Record& record, const std::vector<history::WatchRecord>& watches) {
  for (const history::WatchRecord& watch : watches) {
    for (const WatchItem& item : watch.items) {
      for (const history::Event& event : item.events) {
        const std::string& key = event.kv.key;
        const bool of_lease = key.starts_with("lease/") || key.starts_with("lock/a/");
        if (!event.is_delete || !of_lease) continue;
        record.lease_sightings.push_back(
            {.lease = std::stoll(key.substr(key.rfind('/') + 1)), .key = key, .call = item.at, .returned = item.at});
      }
    }
  }
}

// --- Watches

Watchers::Watchers(Cluster& cluster, size_t count) : cluster_(cluster), watchers_(count) {
  for (size_t i = 0; i < count; ++i) {
    history::WatchRecord record{
        .name = "w" + std::to_string(i), .key = std::string(1, '\0'), .end = std::string(1, '\0')};
    if (i % 3 == 1) record.key = "k0", record.end = "k4";
    if (i % 3 == 2) record.key = "lease/", record.end = "lease0", record.puts = false;
    records_.push_back(std::move(record));
  }
}

Watchers::~Watchers() {
  for (Watcher& watcher : watchers_) {
    if (watcher.stream) watcher.stream->close();
  }
}

void Watchers::act() {
  const size_t index = cluster_.random.below(watchers_.size());
  Watcher& watcher = watchers_[index];
  if (watcher.stream) {
    if (!cluster_.is_up(watcher.node)) return;
    if (cluster_.random.below(400) == 0) {  // the client goes elsewhere by itself
      watcher.stream->close();
      watcher.stream.reset();
      return;
    }
    if (cluster_.random.below(20) == 0) watcher.stream->progress();
    if (index % 2 == 1 && cluster_.random.below(16) != 0) return;
    return read(index);
  }
  const size_t node = cluster_.random.below(cluster_.size());
  if (cluster_.is_up(node)) connect(index, node);
}

void Watchers::connect(size_t index, size_t node) {
  Watcher& watcher = watchers_[index];
  const history::WatchRecord& record = records_[index];
  watcher.node = node;
  watcher.stream = cluster_.member(node).watches().open([] {});
  etcdserverpb::WatchCreateRequest request;
  request.set_key(record.key);
  request.set_range_end(record.end);
  request.set_start_revision(watcher.next);
  if (!record.puts) request.add_filters(etcdserverpb::WatchCreateRequest::NOPUT);
  watcher.stream->create(request);
  records_[index].items.push_back(
      {.kind = WatchItem::Kind::kStarted, .at = cluster_.clock.monotonic(), .revision = watcher.next});
}

void Watchers::read(size_t index) {
  while (watchers_[index].stream) {
    const watch::ResponsePtr response = watchers_[index].stream->take();
    if (!response) return;
    hear(index, response->message);
  }
}

void Watchers::hear(size_t index, const etcdserverpb::WatchResponse& response) {
  Watcher& watcher = watchers_[index];
  const auto item = item_of(response, cluster_.clock.monotonic());
  if (!item) return;
  switch (item->kind) {
    case WatchItem::Kind::kCompacted:
      if (item->revision == 0) return cluster_.fault("watch " + records_[index].name + ": " + response.cancel_reason());
      watcher.next = item->revision;
      watcher.stream->close();
      watcher.stream.reset();
      break;
    case WatchItem::Kind::kProgress:
      // A progress below the start only says that the watch is alive.
      watcher.heard = std::max(watcher.heard, item->revision);
      watcher.next = std::max(watcher.next, item->revision + 1);
      break;
    default:
      watcher.next = item->events.back().kv.mod_revision + 1;
      watcher.heard = std::max(watcher.heard, watcher.next - 1);
  }
  records_[index].items.push_back(*item);
}

void Watchers::member_down(size_t node) {
  for (Watcher& watcher : watchers_) {
    if (!watcher.stream || watcher.node != node) continue;
    watcher.stream->close();
    watcher.stream.reset();
  }
}

void Watchers::read_all() {
  for (size_t i = 0; i < watchers_.size(); ++i) {
    if (watchers_[i].stream && cluster_.is_up(watchers_[i].node)) {
      watchers_[i].stream->progress();
      read(i);
    } else if (!watchers_[i].stream) {
      const size_t node = cluster_.random.below(cluster_.size());
      if (cluster_.is_up(node)) connect(i, node);
    }
  }
}

bool Watchers::have_heard(int64_t revision) const {
  return std::all_of(watchers_.begin(), watchers_.end(),
                     [revision](const Watcher& watcher) { return watcher.heard >= revision; });
}

// --- Leases

LeaseClients::Lease* LeaseClients::find(size_t place, int64_t id) {
  return leases_[place].id == id ? &leases_[place] : nullptr;
}

size_t LeaseClients::begin(const Lease& lease, Call::Kind kind) {
  return begin_lease_call(record_,
                          {.kind = kind, .lease = lease.id, .client = 500, .call = cluster_.clock.monotonic()});
}

void LeaseClients::end(size_t call, Outcome outcome, int64_t ttl) {
  end_lease_call(record_, call, outcome, ttl, cluster_.clock.monotonic());
}

void LeaseClients::act() {
  SeededRandom& random = cluster_.random;
  const size_t place = random.below(leases_.size());
  const size_t node = random.below(cluster_.size());
  if (!cluster_.is_up(node)) return;
  Lease& lease = leases_[place];
  if (lease.id == 0 || (lease.ended && random.below(20) == 0)) {
    lease = {.id = next_id_++, .renewals_left = random.below(12)};
    // Some so late that what is left of their time was checkpointed before, and is to be reset.
    if (random.below(2) == 0) lease.pace_ms = 450 + static_cast<int64_t>(random.below(400));
    return grant(place, node);
  }
  if (!lease.granted || lease.busy || lease.ended) {
    if (lease.granted && random.below(10) == 0) look(place, node);
    // A grant that was never answered: another one takes its place.
    if (!lease.granted && random.below(2000) == 0) lease.ended = true;
    return;
  }
  if (!lease.attached) return attach(place, node);
  if (random.below(30) == 0) return look(place, node);
  if (lease.next_renewal > cluster_.clock.monotonic()) return;
  if (lease.renewals_left > 0) return renew(place, node);
  if (random.below(4) == 0) return revoke(place, node);
  lease.next_renewal = cluster_.clock.monotonic() + std::chrono::seconds(1);
  look(place, node);  // left to run out
}

void LeaseClients::grant(size_t place, size_t node) {
  Lease& lease = leases_[place];
  const auto ttl = static_cast<int64_t>(2 + cluster_.random.below(6));
  conclavepb::Entry command;
  command.mutable_lease_grant()->set_id(lease.id);
  command.mutable_lease_grant()->set_ttl(ttl);
  const size_t call = begin(lease, Call::Kind::kGrant);
  cluster_.member(node).propose(std::move(command),
                                [this, place, id = lease.id, call, ttl](Result<apply::Message> done) {
                                  end(call, done ? Outcome::kOk : outcome_of(done.error()), done ? ttl : 0);
                                  if (Lease* lease = find(place, id)) {
                                    lease->granted = done.has_value();
                                    lease->ended = !done;
                                    lease->ttl = ttl;
                                  }
                                });
}

void LeaseClients::attach(size_t place, size_t node) {
  Lease& lease = leases_[place];
  lease.busy = true;
  history::Operation operation{.client = 500 + static_cast<uint64_t>(lease.id), .call = cluster_.clock.monotonic()};
  operation.success = {{.kind = history::Request::Kind::kPut,
                        .key = key_of(lease.id),
                        .value = "of " + std::to_string(lease.id),
                        .lease = lease.id}};
  const size_t at = record_.operations.size();
  record_.operations.push_back(operation);
  conclavepb::Entry command;
  command.mutable_put()->set_key(operation.success[0].key);
  command.mutable_put()->set_value(operation.success[0].value);
  command.mutable_put()->set_lease(lease.id);
  cluster_.member(node).propose(std::move(command), [this, place, id = lease.id, at](Result<apply::Message> done) {
    history::Operation& operation = record_.operations[at];
    operation.outcome = done ? Outcome::kOk : outcome_of(done.error());
    if (operation.outcome != Outcome::kUnknown) operation.returned = cluster_.clock.monotonic();
    if (done) {
      operation.revision = static_cast<const etcdserverpb::PutResponse&>(**done).header().revision();
      operation.answers.resize(1);
    }
    if (Lease* lease = find(place, id)) {
      lease->busy = false;
      lease->attached = done.has_value();
      lease->ended |= !done;  // left to run out, unseen
      lease->next_renewal = cluster_.clock.monotonic() + std::chrono::milliseconds(lease->pace_ms * lease->ttl);
    }
  });
}

void LeaseClients::renew(size_t place, size_t node) {
  Lease& lease = leases_[place];
  --lease.renewals_left;
  lease.next_renewal = cluster_.clock.monotonic() + std::chrono::milliseconds(lease.pace_ms * lease.ttl);
  const size_t call = begin(lease, Call::Kind::kKeepAlive);
  cluster_.member(node).keep_alive(lease.id, [this, place, id = lease.id, call](const Result<int64_t>& ttl) {
    end(call, ttl ? Outcome::kOk : Outcome::kUnknown, ttl ? *ttl : 0);
    Lease* lease = find(place, id);
    if (lease != nullptr && ttl && *ttl == 0) lease->ended = true;
  });
}

void LeaseClients::revoke(size_t place, size_t node) {
  Lease& lease = leases_[place];
  conclavepb::Entry command;
  command.mutable_lease_revoke()->set_id(lease.id);
  const size_t call = begin(lease, Call::Kind::kRevoke);
  lease.ended = true;
  // "Not found" means that it is over as well, but not by this call: that tells nothing new.
  cluster_.member(node).propose(std::move(command), [this, call](const Result<apply::Message>& done) {
    end(call, done ? Outcome::kOk : outcome_of(done.error()), 0);
  });
}

// A linearizable look at the key.
void LeaseClients::look(size_t place, size_t node) {
  const Lease& lease = leases_[place];
  if (!lease.attached) return;
  const auto call = cluster_.clock.monotonic();
  cluster_.member(node).linearize([this, place, id = lease.id, node, call](const Status& may) {
    if (!may) return;
    const auto found = cluster_.member(node).reader()->get(key_of(id), 0);
    if (!found) return;
    const bool there = *found != nullptr;
    record_.lease_sightings.push_back(
        {.lease = id, .key = key_of(id), .call = call, .returned = cluster_.clock.monotonic(), .there = there});
    if (Lease* lease = find(place, id); lease != nullptr && !there) lease->ended = true;
  });
}

bool LeaseClients::all_over() {
  for (size_t i = 0; i < cluster_.size(); ++i) {
    if (cluster_.is_up(i) && cluster_.member(i).leases().size() > 0) return false;
  }
  return true;
}

}  // namespace sim
