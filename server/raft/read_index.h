// Reads on the leader that wait for their index (paper, section 8; dissertation, 6.4). All reads that arrive between
// two hand-overs share one round of heartbeats.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace raft {

class ReadQueue {
 public:
  void add(uint64_t context) { arrived_.push_back(context); }
  bool has_arrived() const { return !arrived_.empty(); }
  uint64_t size() const { return arrived_.size() + confirming_; }
  uint64_t round() const { return round_; }

  // A new round for everything that arrived. The round's heartbeats are sent after this call, so an answer to one shows
  // that nobody else led when the reads arrived.
  uint64_t begin_round(uint64_t commit);

  // A majority has answered `round`. Calls `done(context, index)` for what it confirms.
  template <class Done>
  void confirmed(uint64_t round, Done done) {
    while (!rounds_.empty() && rounds_.front().number <= round) {
      for (uint64_t context : rounds_.front().contexts) done(context, rounds_.front().commit);
      confirming_ -= rounds_.front().contexts.size();
      rounds_.pop_front();
    }
  }

  std::vector<uint64_t> drop_all();

 private:
  struct Round {
    uint64_t number;
    uint64_t commit;
    std::vector<uint64_t> contexts;
  };
  uint64_t round_ = 0;
  uint64_t confirming_ = 0;
  std::vector<uint64_t> arrived_;
  std::deque<Round> rounds_;
};

}  // namespace raft
