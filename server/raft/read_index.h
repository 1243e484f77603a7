// Reads that wait for their index (paper, section 8; dissertation, 6.4). On the leader all reads that arrive between
// two hand-overs share one round of heartbeats; on the others they share one question to the leader.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/world.h"

namespace raft {

// On the leader: reads of its own, and batches of reads that wait at other members.
class ReadQueue {
 public:
  void add(uint64_t context) { arrived_.push_back(context); }
  // The newest batch answers a member's earlier ones as well.
  void add_batch(uint64_t member, uint64_t batch) { arrived_batches_[member] = batch; }
  bool has_arrived() const { return !arrived_.empty() || !arrived_batches_.empty(); }
  bool is_waiting() const { return has_arrived() || !rounds_.empty(); }
  uint64_t size() const { return arrived_.size() + confirming_; }  // of its own
  uint64_t round() const { return round_; }

  // A new round for everything that arrived. The round's heartbeats are sent after this call, so an answer to one shows
  // that nobody else led when the reads arrived.
  uint64_t begin_round(uint64_t commit);

  // A majority has answered `round`. Calls `done(context, index)` and `done_batch(member, batch, index)` for what it
  // confirms.
  template <class Done, class DoneBatch>
  void confirmed(uint64_t round, Done done, DoneBatch done_batch) {
    while (!rounds_.empty() && rounds_.front().number <= round) {
      const Round& first = rounds_.front();
      for (const uint64_t context : first.contexts) done(context, first.commit);
      for (const auto& [member, batch] : first.batches) done_batch(member, batch, first.commit);
      confirming_ -= first.contexts.size();
      rounds_.pop_front();
    }
  }

  std::vector<uint64_t> drop_all();  // its own; other members notice by themselves

 private:
  struct Round {
    uint64_t number;
    uint64_t commit;
    std::vector<uint64_t> contexts;
    std::map<uint64_t, uint64_t> batches;  // by member
  };
  uint64_t round_ = 0;
  uint64_t confirming_ = 0;
  std::vector<uint64_t> arrived_;
  std::map<uint64_t, uint64_t> arrived_batches_;
  std::deque<Round> rounds_;
};

// Batches of which the leader was asked. What arrives meanwhile waits for the next one.
constexpr size_t kReadBatchesAskedMax = 16;

// On the others.
class ForwardedReads {
 public:
  void add(uint64_t context) { arrived_.push_back(context); }
  uint64_t size() const { return arrived_.size() + asked_; }

  // Closes a batch with everything that arrived: the leader is to be asked with its number. Nothing: nothing arrived,
  // or too many questions are open. The numbers begin at a random one, so that an answer to a question from before a
  // restart is not taken for one to a question of now.
  std::optional<uint64_t> begin_batch(Random& random);
  // The number to ask with again when there was no answer.
  std::optional<uint64_t> newest() const;

  // The leader's answer to `batch` is one for those before it, too: they were complete when it was asked.
  template <class Done>
  void answered(uint64_t batch, Done done) {
    if (batches_.empty() || batch > batches_.back().number) return;
    while (!batches_.empty() && batches_.front().number <= batch) {
      for (const uint64_t context : batches_.front().contexts) done(context);
      asked_ -= batches_.front().contexts.size();
      batches_.pop_front();
    }
  }

  std::vector<uint64_t> drop_all();

 private:
  struct Batch {
    uint64_t number;
    std::vector<uint64_t> contexts;
  };
  uint64_t last_number_ = 0;  // 0: none was drawn yet
  uint64_t asked_ = 0;
  std::vector<uint64_t> arrived_;
  std::deque<Batch> batches_;
};

}  // namespace raft
