// Clients' requests that only the leader can serve, from the member that was asked to the leader and back. Owned by the
// loop and on its thread. A proposal is sent once and never again: whether a lost one happens is unknown, and its
// waiter hears so when its time is over.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/peer.pb.h"
#include "base/entry.h"
#include "base/network.h"
#include "member/lease_keeper.h"
#include "member/stage.h"
#include "member/waiters.h"

namespace member {

// Something for the log.
struct Command {
  uint64_t request_id = 0;  // 0: nobody waits
  EntryType type = EntryType::kCommand;
  std::shared_ptr<const Bytes> data;
  uint64_t from = 0;  // the member whose client asks; 0: this one
};

inline constexpr uint32_t kPeerFrameVersion = 1;
inline constexpr size_t kForwardFrameBytes = 1 << 20;  // joined into one frame (one call may be larger)
inline constexpr size_t kLeaseCallsWaitingMax = 100'000;

class Forward {
 public:
  struct Parts {
    Network* network = nullptr;  // null: a cluster of one
    Waiters& waiters;
    Time answer_within{};
    // Random: answers to what this member asked before it was started anew must not fit what it asks now.
    uint64_t first_call = 1;
  };
  explicit Forward(Parts parts) : parts_(parts), next_call_(parts.first_call) {}

  // To the leader. What cannot be sent is refused at once.
  void propose(uint64_t leader, const Command& command);
  void keep_alive(uint64_t leader, int64_t id, Time now, KeptAlive done);
  void remaining(uint64_t leader, int64_t id, Time now, Remaining done);
  // To whoever forwarded it.
  void refuse(const Command& command, const Error& error);

  // What a frame from another member asks of this one.
  struct Asked {
    std::vector<Command> proposals;
    struct Lease {
      uint64_t from = 0;
      conclavepb::LeaseCall call;
    };
    std::vector<Lease> leases;
  };
  // Answers in it are taken here. kInvalidArgument: not a frame of ours; it is dropped.
  Result<Asked> take(uint64_t from, const Bytes& frame);
  void answer(const Asked::Lease& asked, const Result<int64_t>& kept_alive);
  void answer(const Asked::Lease& asked, const Result<std::optional<Time>>& remaining);

  void flush();           // sends what was gathered
  void leader_changed();  // lease calls to the old one fail: nothing is known of them
  void expire(Time now);

 private:
  struct LeaseWaiter {
    Time until{};
    KeptAlive kept_alive;  // one of the two
    Remaining remaining;
    void fail(const Error& error) const;
  };
  conclavepb::PeerCall& add_call(uint64_t to, size_t bytes);
  void send(uint64_t to);
  bool call_leader(uint64_t leader, int64_t id, conclavepb::LeaseCall::Kind kind, LeaseWaiter waiter);
  void take_answer(const conclavepb::LeaseAnswer& answer);

  Parts parts_;
  struct Gathered {
    conclavepb::PeerFrame frame;
    size_t bytes = 0;
  };
  std::unordered_map<uint64_t, Gathered> gathered_;
  std::unordered_map<uint64_t, LeaseWaiter> waiting_;
  uint64_t next_call_;
};

}  // namespace member
