// A service that leads when it is its turn, for as long as the program runs: it has a lease of its own, replaces it
// whenever it is lost, campaigns, leads, and stands again after each term. It opens whatever the state of the cluster.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "conclave/call.h"
#include "conclave/client.h"
#include "conclave/election.h"
#include "conclave/result.h"

namespace conclave {
inline namespace v1 {

enum class CandidateState : std::uint8_t {
  kJoining,  // not in the queue: no member answers, or the lease or the key was lost, or a term just ended
  kWaiting,  // in the queue: others are before it
  kLeading,  // `lead` runs, or is about to
  kClosed,   // final: closed, or its client is
};

struct CandidateOptions {
  std::string election = {};     // its name; not empty
  std::string value = {};        // proclaimed at the begin of each term; any bytes
  std::chrono::seconds ttl{10};  // 1 s to 1 day: how long after the end (or a pause) of a leader the next one leads
  // Runs once a term, on the candidate's own thread, with no lock held; it may call anything of the SDK and destroy its
  // own Candidate. `stop` fires when the term is lost or the candidate is closed: return soon then, for the next leader
  // does not wait for you. Returning while still leader resigns and stands again (at the end of the queue); so does an
  // exception, which is logged. After a term of less than a second it stands again with back-off (50 ms to 2 s).
  std::function<void(Leadership& mine, std::stop_token stop)> lead = nullptr;
  // On a callback thread, one at a time and in order. Not for what must stop at once: that is `stop`.
  std::function<void(CandidateState, const std::string& why)> on_state = nullptr;
};

class [[nodiscard]] Candidate {
 public:
  // Fails only for bad arguments (kInvalidArgument) and a closed client; the cluster may still be down.
  static Result<Candidate> open(const Client& client, CandidateOptions options);
  Candidate(Candidate&&) noexcept;
  Candidate& operator=(Candidate&&) noexcept;
  // Asks `lead` to stop (the stop callbacks run in this thread), waits for it, except from inside itself, and resigns
  // in the background. No callback runs or starts afterwards.
  ~Candidate();

  CandidateState state() const;  // kLeading only while the term lasts: reads the clock
  // Until it is in the queue or leads; without a timeout for as long as it takes. kFailedPrecondition: closed.
  Status wait_ready(CallOptions call = {}) const;
  // As the destructor, but waits for the answer, and tells. kDeadlineExceeded, kMayHaveHappened: `lead` has not
  // returned, or no member has answered; it goes on in the background, and ends with the lease at the latest.
  // kFailedPrecondition from inside `lead`.
  Status close(CallOptions call = {});

 private:
  class Impl;
  explicit Candidate(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace conclave
