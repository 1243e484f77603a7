// Clients that hold something: watches that resume on another member, leases with a key each.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "history/record_file.h"
#include "sim/cluster.h"

namespace sim {

// Notes a call that begins or ends; begin gives its place in the record.
size_t begin_lease_call(history::Record& record, history::LeaseCall call);
void end_lease_call(history::Record& record, size_t place, history::Outcome outcome, int64_t ttl, history::Time now);
// Keys with a lease that watches saw deleted: those of LeaseClients and of LockClients.
void add_lease_sightings(history::Record& record, const std::vector<history::WatchRecord>& watches);

// Watches, each on one member until that goes down, then on another from the next revision on. Every other one reads so
// seldom that its buffer is full meanwhile.
class Watchers {
 public:
  Watchers(Cluster& cluster, size_t count);
  ~Watchers();

  void act();  // one of them connects or reads
  void member_down(size_t node);
  void read_all();
  // All have heard everything up to `revision`.
  bool have_heard(int64_t revision) const;
  const std::vector<history::WatchRecord>& records() const { return records_; }

 private:
  struct Watcher {
    std::shared_ptr<watch::Stream> stream;
    size_t node = 0;
    int64_t next = 2;
    int64_t heard = 1;  // by events or progress
  };
  void connect(size_t index, size_t node);
  void read(size_t index);
  void hear(size_t index, const etcdserverpb::WatchResponse& response);

  Cluster& cluster_;
  std::vector<Watcher> watchers_;
  std::vector<history::WatchRecord> records_;
};

// Leases that are granted, kept alive for a while by any member, and then revoked or left to run out; each has a key
// that only the lease's end deletes.
class LeaseClients {
 public:
  static constexpr size_t kLeases = 4;
  LeaseClients(Cluster& cluster, history::Record& record) : cluster_(cluster), record_(record), leases_(kLeases) {}

  void act();
  void member_down(size_t node) { (void)node; }  // answers that do not come are unknown anyway
  // All that were granted are over, as far as anybody was told.
  bool all_over();

 private:
  struct Lease {
    int64_t id = 0;
    bool granted = false;
    bool attached = false;
    bool busy = false;
    bool ended = false;  // it was told so
    uint64_t renewals_left = 0;
    int64_t pace_ms = 300;  // for each second of the TTL, from one renewal to the next
    std::chrono::nanoseconds next_renewal{};
    int64_t ttl = 0;
  };
  using Call = history::LeaseCall;

  std::string key_of(int64_t id) const { return "lease/" + std::to_string(id); }
  size_t begin(const Lease& lease, Call::Kind kind);
  void end(size_t call, history::Outcome outcome, int64_t ttl);
  void grant(size_t place, size_t node);
  void attach(size_t place, size_t node);
  void renew(size_t place, size_t node);
  void revoke(size_t place, size_t node);
  void look(size_t place, size_t node);
  Lease* find(size_t place, int64_t id);

  Cluster& cluster_;
  history::Record& record_;
  std::vector<Lease> leases_;
  int64_t next_id_ = 1000;
};

}  // namespace sim
