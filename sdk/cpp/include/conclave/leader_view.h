// Who leads an election, kept up to date in memory. It opens whatever the state of the cluster, and goes on through
// restarts and changes of member; what it knew last stays until a member tells otherwise.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "conclave/call.h"
#include "conclave/client.h"
#include "conclave/election.h"
#include "conclave/result.h"
#include "conclave/types.h"

namespace conclave {
inline namespace v1 {

// Immutable, of one revision.
struct LeaderSnapshot {
  std::optional<Leader> leader = std::nullopt;
  Revision revision{};  // at which this held; zero: no member has answered yet
};

struct LeaderViewOptions {
  std::string election = {};  // its name; not empty
  // On a callback thread, one at a time: once when it is known who leads, if anybody, then whenever leader or value
  // change. Conflated: a slow one sees the newest. leader() and snapshot() are at least as new inside it.
  std::function<void(const std::optional<Leader>& now)> on_change = nullptr;
};

// It follows all candidates of the election, and so costs memory and messages for each of them.
class [[nodiscard]] LeaderView {
 public:
  // kInvalidArgument: no name. kFailedPrecondition: the client is closed.
  static Result<LeaderView> open(const Client& client, LeaderViewOptions options);
  LeaderView(LeaderView&&) noexcept;
  LeaderView& operator=(LeaderView&&) noexcept;
  ~LeaderView();  // waits for a running callback, except from inside itself

  // Until a member has told who leads, which may be nobody; without a timeout for as long as it takes.
  Status wait_ready(CallOptions call = {}) const;
  std::shared_ptr<const LeaderSnapshot> snapshot() const;  // in memory; never null, never older than the one before
  std::optional<Leader> leader() const;                    // the snapshot's

 private:
  class Impl;
  explicit LeaderView(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace conclave
