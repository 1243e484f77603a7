// What a leader knows of one member's log (its own included).
#pragma once

#include <cstdint>
#include <deque>

namespace raft {

// After so many answered heartbeats without progress an append counts as lost,
constexpr uint32_t kHeartbeatsWithoutArrivalMax = 3;
// and one that has arrived as never to be answered.
constexpr uint32_t kHeartbeatsWithoutAnswerMax = 10;
// A member that was silent for so many election timeouts while a snapshot was on its way to it starts over, and nothing
// is kept in memory for it any more.
constexpr uint64_t kSnapshotSilenceElectionsMax = 10;

struct Progress {
  enum class State : uint8_t {
    kProbe,      // where the logs agree is not known: one message at a time, repeated with the heartbeats
    kReplicate,  // known: entries are sent ahead of the answers, up to the limit of messages in flight
    kSnapshot,   // what it needs is not in memory: no entries until it has a snapshot
  };
  struct InFlight {
    uint64_t last_index;
    uint64_t bytes;
  };

  State state = State::kProbe;
  uint64_t match = 0;  // durable there
  uint64_t next = 1;   // the next to send; above match
  uint64_t commit_sent = 0;
  uint64_t commit_known = 0;                 // there
  uint64_t read_round = 0;                   // the last round of heartbeats it has answered
  bool probe_sent = false;                   // kProbe: waiting for the answer or the next heartbeat's
  uint32_t heartbeats_without_progress = 0;  // kReplicate, with appends in flight; ticks in which one was answered
  uint64_t heartbeat_tick = 0;               // when one was answered last
  std::deque<InFlight> inflight = {};        // kReplicate: each append that is not answered
  uint64_t inflight_bytes = 0;

  bool heard = false;       // it has answered this leader
  uint64_t heard_tick = 0;  // when it did last, or when it was taken in

  uint64_t snapshot_index = 0;  // kSnapshot: what was offered; 0: the driver has yet to offer one
  uint64_t snapshot_term = 0;
  uint64_t keep_above = 0;  // not 0: entries above this stay in memory until it has caught up after its snapshot

  void begin_probe() { begin(State::kProbe); }
  void begin_replicate() { begin(State::kReplicate); }
  void begin_snapshot(uint64_t log_base) {
    begin(State::kSnapshot);
    keep_above = log_base;
  }
  void sent(uint64_t last_index, uint64_t bytes) {
    next = last_index + 1;
    inflight.push_back({last_index, bytes});
    inflight_bytes += bytes;
  }
  // The member's log agrees through `index`. False when that is old news.
  bool advance(uint64_t index) {
    while (!inflight.empty() && inflight.front().last_index <= index) {
      inflight_bytes -= inflight.front().bytes;
      inflight.pop_front();
    }
    if (index >= next) next = index + 1;
    if (index <= match) return false;
    match = index;
    heartbeats_without_progress = 0;
    return true;
  }

 private:
  void begin(State to) {
    state = to;
    next = match + 1;
    probe_sent = false;
    heartbeats_without_progress = 0;
    inflight.clear();
    inflight_bytes = 0;
    snapshot_index = 0;
    snapshot_term = 0;
  }
};

const char* name(Progress::State state);

}  // namespace raft
