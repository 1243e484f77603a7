#include "sim/workload.h"

#include <algorithm>

#include "mvcc/mvcc.h"

namespace sim {
namespace {

constexpr uint64_t kKeys = 12;
constexpr size_t kLeasesMax = 4;

std::string all(int) { return std::string(1, '\0'); }

}  // namespace

void Workload::fault(const std::string& text) { faults_.push_back("seed " + std::to_string(sim_.seed) + ": " + text); }

void Workload::disconnect() {
  ++epoch_;
  if (stream_) stream_->close();
  stream_.reset();
}

void Workload::act() {
  switch (sim_.random.below(12)) {
    case 0:
      return lease();
    case 1:
      return compacts && sim_.random.below(6) == 0 ? compact() : follow();
    case 2:
    case 3:
      return follow();
    default:
      return write();
  }
}

void Workload::send(conclavepb::Entry command, std::shared_ptr<Write> write) {
  if (write) writes_.push_back(write);
  sim_.member().propose(std::move(command), [this, write, epoch = epoch_](Result<apply::Message> done) {
    if (epoch != epoch_ || !done || !write) return;
    // Every response of a write begins with its header.
    const auto* descriptor = (*done)->GetDescriptor();
    const auto& header = (*done)->GetReflection()->GetMessage(**done, descriptor->FindFieldByName("header"));
    write->revision = static_cast<const etcdserverpb::ResponseHeader&>(header).revision();
    ++acknowledged_;
  });
}

void Workload::write() {
  auto write = std::make_shared<Write>();
  conclavepb::Entry command;
  const auto key = [this] { return "k" + std::to_string(sim_.random.below(kKeys)); };
  const auto value = [this, &write] {
    std::string unique = "v" + std::to_string(next_value_++) + std::string(sim_.random.below(600), '.');
    by_value_[unique] = write;
    return unique;
  };
  if (sim_.random.below(3) > 0) {
    const auto [k, v] = std::pair(key(), value());
    command.mutable_put()->set_key(k);
    command.mutable_put()->set_value(v);
    write->puts[k] = v;
  } else {  // a transaction over several keys, sometimes with a delete
    auto& txn = *command.mutable_txn();
    for (uint64_t i = 0, n = 2 + sim_.random.below(3); i < n; ++i) {
      const std::string k = key();
      if (write->puts.contains(k)) continue;
      if (i > 0 && sim_.random.below(4) == 0) {
        txn.add_success()->mutable_request_delete_range()->set_key(k);
        write->puts[k] = "";
        continue;
      }
      auto& put = *txn.add_success()->mutable_request_put();
      put.set_key(k);
      put.set_value(write->puts[k] = value());
    }
  }
  send(std::move(command), std::move(write));
}

void Workload::lease() {
  const auto now = sim_.clock.monotonic();
  if (leases_.size() < kLeasesMax || sim_.random.below(8) == 0) {
    const auto id = static_cast<int64_t>(1 + sim_.random.below(1'000'000'000));
    const auto ttl = static_cast<int64_t>(2 + sim_.random.below(5));
    conclavepb::Entry grant;
    grant.mutable_lease_grant()->set_id(id);
    grant.mutable_lease_grant()->set_ttl(ttl);
    sim_.member().propose(std::move(grant), [this, id, ttl, now, epoch = epoch_](const Result<apply::Message>& done) {
      if (epoch != epoch_ || !done) return;
      leases_[id] = {.ttl = ttl, .promised = now + std::chrono::seconds(ttl), .key = "lease/" + std::to_string(id)};
      conclavepb::Entry put;
      put.mutable_put()->set_key(leases_[id].key);
      put.mutable_put()->set_value("held");
      put.mutable_put()->set_lease(id);
      sim_.member().propose(std::move(put), [](const Result<apply::Message>&) {});
    });
    return;
  }
  auto chosen = std::next(leases_.begin(), static_cast<ptrdiff_t>(sim_.random.below(leases_.size())));
  if (chosen->second.ended) {
    leases_.erase(chosen);
    return;
  }
  if (chosen->second.renew_at > now) return;
  // Up to so late that what is left of its time was checkpointed before, and is to be reset.
  const auto pause = static_cast<int64_t>(sim_.random.below(800));
  chosen->second.renew_at = now + std::chrono::milliseconds(pause * chosen->second.ttl);
  const int64_t id = chosen->first;
  sim_.member().keep_alive(id, [this, id, now, epoch = epoch_](const Result<int64_t>& ttl) {
    const auto lease = leases_.find(id);
    if (epoch != epoch_ || !ttl || lease == leases_.end()) return;
    if (*ttl > 0) {
      if (lease->second.ended) fault("lease " + std::to_string(id) + " was gone and is kept alive");
      lease->second.promised = std::max(lease->second.promised, now + std::chrono::seconds(lease->second.ttl));
      return;
    }
    if (!lease->second.ended && sim_.clock.monotonic() < lease->second.promised) {
      fault("lease " + std::to_string(id) + " ended before its time");
    }
    lease->second.ended = true;
  });
}

void Workload::compact() {
  const int64_t revision = sim_.member().reader()->at().revision;
  if (revision < 5) return;
  learn_history();  // before it is gone
  conclavepb::Entry command;
  command.mutable_compaction()->set_revision(revision - static_cast<int64_t>(sim_.random.below(5)));
  command.mutable_compaction()->set_physical(sim_.random.below(2) == 0);
  sim_.member().propose(std::move(command), [](const Result<apply::Message>&) {});
}

void Workload::follow() {
  if (!stream_) {
    stream_ = sim_.member().watches().open([] {});
    etcdserverpb::WatchCreateRequest request;
    request.set_key(all(0));
    request.set_range_end(all(0));
    request.set_start_revision(seen_ + 1);
    stream_->create(request);
  }
  if (reads_left_out_ > 0) {
    --reads_left_out_;
    return;
  }
  if (sim_.random.below(50) == 0) reads_left_out_ = sim_.random.below(100);
  while (const watch::ResponsePtr response = stream_->take()) {
    if (response->message.canceled()) {
      if (response->message.compact_revision() <= seen_) fault("watch cancelled without reason");
      // What was compacted away is known from the history; the watcher goes on after it.
      for (auto it = history_.upper_bound(seen_);
           it != history_.end() && it->first < response->message.compact_revision(); ++it) {
        watched_[it->first] = it->second;
      }
      seen_ = response->message.compact_revision() - 1;
      stream_.reset();
      return;
    }
    int64_t last = 0;
    for (const auto& event : response->message.events()) {
      const int64_t revision = event.kv().mod_revision();
      if (revision <= seen_) fault("event of revision " + std::to_string(revision) + " seen again");
      last = std::max(last, revision);
      watched_[revision][event.kv().key()] = event.type() == mvccpb::Event::DELETE ? "" : event.kv().value();
    }
    seen_ = std::max(seen_, last);  // all events of a revision come in one response
  }
}

void Workload::learn_history() {
  const auto reader = sim_.member().reader();
  const int64_t now = reader->at().revision;
  if (now < known_) fault("revision " + std::to_string(now) + " after " + std::to_string(known_));
  // Compaction keeps the rows of the compacted revision itself, and we always learn before compacting.
  const int64_t from = std::max(known_ + 1, reader->at().compacted);
  if (from > now) return;
  if (from > known_ + 1) fault("history is gone without a compaction of ours");
  int64_t last = known_;
  auto read = reader->history(
      from, now, [](std::string_view) { return true; },
      [this, &last](const mvcc::EventBatch& batch) {
        if (batch.revision != last + 1) fault("revision " + std::to_string(last + 1) + " is missing");
        last = batch.revision;
        for (const auto& event : batch.events) {
          history_[batch.revision][event.kv->key] = event.is_delete ? "" : event.kv->value;
        }
        return true;
      });
  if (!read) fault("history: " + read.error().message);
  for (auto it = history_.upper_bound(known_); it != history_.end(); ++it) {
    for (const auto& [key, value] : it->second) {
      if (value.empty()) {
        expected_.erase(key);
      } else {
        expected_[key] = value;
      }
    }
  }
  known_ = now;
}

void Workload::hold_against(const Write& write) {
  if (write.revision == 0) return;
  const auto change = history_.find(write.revision);
  for (const auto& [key, value] : write.puts) {
    const bool there = change != history_.end() && change->second.contains(key) && change->second.at(key) == value;
    // Deleting what is not there leaves no trace.
    if (!there && !value.empty()) {
      fault("acknowledged write of " + key + " at revision " + std::to_string(write.revision) + " is not there");
    }
  }
}

void Workload::check() {
  learn_history();
  std::map<std::string, int64_t> places;
  for (const auto& [revision, change] : history_) {
    for (const auto& [key, value] : change) {
      if (value.empty() || value == "held") continue;
      if (!places.emplace(value, revision).second) fault("the value of one request is there twice");
      const auto write = by_value_.find(value);
      if (write == by_value_.end()) {
        fault("a value that nobody wrote at revision " + std::to_string(revision));
        continue;
      }
      for (const auto& [k, v] : write->second->puts) {  // whole
        if (!v.empty() && !(change.contains(k) && change.at(k) == v))
          fault("half a transaction at " + std::to_string(revision));
      }
    }
  }
  for (const auto& write : writes_) hold_against(*write);
  // The latest state is what the history amounts to.
  etcdserverpb::RangeRequest request;
  request.set_key(all(0));
  request.set_range_end(all(0));
  etcdserverpb::RangeResponse response;
  if (auto read = sim_.member().reader()->range(request, &response); !read)
    return fault("range: " + read.error().message);
  std::map<std::string, std::string> found;
  for (const auto& kv : response.kvs()) found[kv.key()] = kv.value();
  if (found != expected_) fault("the latest state is not what the history amounts to");
  for (auto& [id, lease] : leases_) {  // a key that went before its lease may
    if (!lease.ended && sim_.clock.monotonic() < lease.promised && !sim_.member().leases().find(id)) {
      fault("lease " + std::to_string(id) + " is gone before its time");
    }
  }
}

bool Workload::settle() {
  return sim_.run_until([this] { return sim_.member().state().proposals_waiting == 0; }, std::chrono::seconds(30));
}

void Workload::check_watch() {
  const bool done = sim_.run_until(
      [this] {
        follow();
        return seen_ >= sim_.member().reader()->at().revision;
      },
      std::chrono::seconds(60));
  if (!done) fault("the watcher never arrives");
  learn_history();
  for (const auto& [revision, change] : history_) {
    const auto seen = watched_.find(revision);
    if (seen == watched_.end()) {
      fault("the watcher missed revision " + std::to_string(revision));
    } else if (seen->second != change) {
      fault("the watcher saw revision " + std::to_string(revision) + " differently");
    }
  }
}

void Workload::check_leases_end() {
  const bool done = sim_.run_until([this] { return sim_.member().leases().size() == 0; }, std::chrono::seconds(20));
  if (!done) fault("leases that nobody renews do not end");
  learn_history();
  for (const auto& [key, value] : expected_) {
    if (value == "held") fault(key + " outlived its lease");
  }
}

}  // namespace sim
