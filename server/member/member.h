// One member: the Raft log, the store and everything between, behind the few calls that `rpc` needs. Knows no socket.
//
// Threads: propose, keep_alive and the readers from any thread. open() builds the stages; the caller runs them, by
// start() in threads of their own, or one step at a time in the simulator.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/entry.pb.h"
#include "apply/applier.h"
#include "base/world.h"
#include "member/founding.h"
#include "member/generation.h"
#include "member/loop.h"
#include "member/options.h"
#include "member/stage.h"
#include "metrics/registry.h"
#include "mvcc/mvcc.h"
#include "watch/hub.h"

namespace member {

// What a member is connected with.
struct Surroundings {
  // Told once, on some thread, when the member has to stop: its disk failed it, or it was removed from the cluster.
  std::function<void(const Error&)> on_failure;
  // The network of this member; none: a cluster of one that nobody can join.
  std::function<std::unique_ptr<Network>(uint64_t cluster_id, uint64_t member_id, uint64_t folder_id)> network = {};
  AskCluster ask_cluster = {};  // for a member that joins
  // A newer store lies beside the one in force (a snapshot of the leader's): stop and destroy this member, call
  // put_in_force() with the generation, and open it again. Told on a stage's thread; nothing is acknowledged after it.
  std::function<void(const Generation&)> on_replace = {};
};

class Member {
 public:
  static Result<std::unique_ptr<Member>> open(World& world, const Options& options, metrics::Registry& metrics,
                                              Surroundings around);
  virtual ~Member() = default;

  virtual Status connect() = 0;  // to the other members; start() does it, the simulator calls it itself
  virtual void start() = 0;      // the stages, in threads
  // Fails what waits, stops the stages, closes log and store in order. Nothing may be called after it but the
  // destructor.
  virtual void stop() = 0;
  virtual std::vector<Stage*> stages() = 0;  // for the simulator, instead of start()

  // Fills `command`'s bookkeeping and proposes it. `done` is called once, on any thread: with the response when it is
  // applied; kResourceExhausted, kUnavailable "no leader": nothing happened; "request timed out": it may still happen.
  virtual void propose(conclavepb::Entry command, Done done) = 0;
  // The same for a change of the membership; `done` once it is applied here. Errors: etcd's texts (member/reconfig.h,
  // apply/members.h), and raft's: one change at a time.
  virtual void change_membership(conclavepb::MembershipChange change, Done done) = 0;
  // `done` when the new leader is known. kFailedPrecondition: this member does not lead, or `to` cannot; kUnavailable:
  // it took too long.
  virtual void transfer_leadership(uint64_t to, std::function<void(Status)> done) = 0;

  // `done` is called at once, on this thread, when this member can answer a linearizable read from what is published
  // now; else later, on a thread that may read the disk.
  virtual void linearize(std::function<void(Status)> done) = 0;
  virtual bool linearizable_now() const = 0;
  virtual std::unique_ptr<mvcc::Reader> reader() = 0;  // of what is published now

  virtual void keep_alive(int64_t lease, KeptAlive done) = 0;
  virtual void remaining(int64_t lease, Remaining done) = 0;
  virtual const lease::Table& leases() const = 0;
  virtual int64_t new_lease_id() = 0;

  // A read found damage (kDataLoss): the member stops, as it does when a write fails.
  virtual void damaged(const Error& error) = 0;

  virtual watch::Hub& watches() = 0;

  struct State {
    uint64_t cluster_id = 0;
    uint64_t member_id = 0;
    RaftStatus raft;
    mvcc::Published published;
    store::Stats store;
    int64_t keys = 0;
    size_t proposals_waiting = 0;
    bool ready = false;  // has a leader and serves clients
    bool is_learner = false;
    bool out_of_space = false;  // a disk is full: writes wait until it is not
  };
  virtual State state() const = 0;
  virtual uint64_t term() const = 0;
  virtual bool is_learner() const = 0;  // cheap: asked before each call of a client
  virtual uint64_t cluster_id() const = 0;
  virtual uint64_t member_id() const = 0;
  virtual std::vector<apply::Member> members() const = 0;
  virtual std::vector<etcdserverpb::AlarmMember> alarms() const = 0;
  virtual const Options& options() const = 0;
};

}  // namespace member
