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
#include "member/loop.h"
#include "member/options.h"
#include "member/stage.h"
#include "metrics/registry.h"
#include "mvcc/mvcc.h"
#include "watch/hub.h"

namespace member {

class Member {
 public:
  // `on_failure` is told once, on some thread, when the member has to stop because its disk failed it.
  static Result<std::unique_ptr<Member>> open(World& world, const Options& options, metrics::Registry& metrics,
                                              std::function<void(const Error&)> on_failure);
  virtual ~Member() = default;

  virtual void start() = 0;  // the stages, in threads
  // Fails what waits, stops the stages, closes log and store in order. Nothing may be called after it but the
  // destructor.
  virtual void stop() = 0;
  virtual std::vector<Stage*> stages() = 0;  // for the simulator, instead of start()

  // Fills `command`'s bookkeeping and proposes it. `done` is called once, on any thread: with the response when it is
  // applied; kResourceExhausted, kUnavailable "no leader": nothing happened; "request timed out": it may still happen.
  virtual void propose(conclavepb::Entry command, Done done) = 0;

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
    bool ready = false;         // has a leader and serves clients
    bool out_of_space = false;  // a disk is full: writes wait until it is not
  };
  virtual State state() const = 0;
  virtual uint64_t term() const = 0;
  virtual uint64_t cluster_id() const = 0;
  virtual uint64_t member_id() const = 0;
  virtual std::vector<apply::Member> members() const = 0;
  virtual std::vector<etcdserverpb::AlarmMember> alarms() const = 0;
  virtual const Options& options() const = 0;
};

}  // namespace member
