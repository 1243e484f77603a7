// What a leader knows of one member's log (its own included).
#pragma once

#include <cstdint>
#include <deque>

namespace raft {

// After so many answered heartbeats an append or its answer counts as lost.
constexpr uint32_t kHeartbeatsWithoutProgressMax = 3;

struct Progress {
  enum class State : uint8_t {
    kProbe,      // where the logs agree is not known: one message at a time, repeated with the heartbeats
    kReplicate,  // known: entries are sent ahead of the answers, up to the limit of messages in flight
  };
  State state = State::kProbe;
  uint64_t match = 0;  // durable there
  uint64_t next = 1;   // the next to send; above match
  uint64_t commit_sent = 0;
  uint64_t read_round = 0;                   // the last round of heartbeats it has answered
  bool probe_sent = false;                   // kProbe: waiting for the answer or the next heartbeat's
  uint32_t heartbeats_without_progress = 0;  // kReplicate, with appends in flight
  std::deque<uint64_t> inflight = {};        // kReplicate: the last index of each append that is not answered

  void begin_probe() {
    state = State::kProbe;
    next = match + 1;
    probe_sent = false;
    heartbeats_without_progress = 0;
    inflight.clear();
  }
  void begin_replicate() {
    state = State::kReplicate;
    next = match + 1;
    probe_sent = false;
    heartbeats_without_progress = 0;
    inflight.clear();
  }
  // The member's log agrees through `index`. False when that is old news.
  bool advance(uint64_t index) {
    while (!inflight.empty() && inflight.front() <= index) inflight.pop_front();
    if (index >= next) next = index + 1;
    if (index <= match) return false;
    match = index;
    heartbeats_without_progress = 0;
    return true;
  }
};

}  // namespace raft
