// The `pull` stage: fetches the snapshot that the leader offers and builds a store from it, beside the one in force.
// When that is complete the loop is asked whether it is still wanted; then the member is closed, the new store is put
// in force and the member is opened again (member.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/world.h"
#include "member/failure.h"
#include "member/snapshot_fetch.h"
#include "member/snapshot_install.h"
#include "member/stage.h"
#include "raft/ready.h"

namespace member {

class SnapshotPull final : public Stage {
 public:
  struct Parts {
    Clock& clock;
    Failure& failure;
    Disk& disk;
    const Options& options;
    uint64_t cluster_id = 0;
    std::function<bool(uint64_t to, Bytes frame)> send;  // in the lane of snapshots
    std::function<void()> fetch_failed;                  // to the loop: it was not to be had
    // To the loop: complete; verdict() answers.
    std::function<void(const Generation&, const snapshot::Manifest&)> built;
    std::function<void(const Generation&)> replace;  // the member is to be closed, and opened with this store
  };
  explicit SnapshotPull(Parts parts);

  // Any thread; what is too much is dropped, as all of it is repeated.
  void offered(const raft::SnapshotOffer& offer) { (void)inbox_.push({.offer = offer}); }
  void frame(uint64_t from, Bytes bytes) { (void)inbox_.push({.from = from, .frame = std::move(bytes)}); }
  void unreachable(uint64_t peer) { (void)inbox_.push({.from = peer}); }
  void verdict(bool wanted) { (void)inbox_.push({.wanted = wanted}); }

  Time step() override;
  const char* name() const override { return "pull"; }

 private:
  struct Item {
    std::optional<raft::SnapshotOffer> offer = std::nullopt;
    uint64_t from = 0;
    std::optional<Bytes> frame = std::nullopt;
    std::optional<bool> wanted = std::nullopt;
  };
  void take(Item& item, Time now);
  Time fetch(Time now);
  Time install();
  void give_up(const char* what, const Error& error);

  Parts parts_;
  Inbox<Item> inbox_;
  std::vector<Item> drained_;
  std::vector<SnapshotFetch::Outgoing> out_;
  std::optional<SnapshotFetch> fetch_;
  std::unique_ptr<SnapshotInstall> install_;
  bool waits_for_verdict_ = false;
};

}  // namespace member
