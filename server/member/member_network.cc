#include <algorithm>

#include "base/log.h"
#include "member/member_of.h"
#include "raft/wire.h"

namespace member {

Status MemberOf::connect() {
  if (!network_) return {};
  tell_network();
  return network_->start(*this);
}

void MemberOf::on_frame(uint64_t from, Network::Lane lane, Bytes frame) {
  switch (lane) {
    case Network::Lane::kControl:
    case Network::Lane::kAppend: {
      auto message = raft::decode(as_bytes(frame));
      if (!message || message->from != from || message->to != member_id()) {
        log_warn("a frame of another member is dropped",
                 {{"from", from}, {"error", message ? "it is not of its sender" : message.error().message}});
        return;
      }
      return loop_->receive(std::move(*message));
    }
    case Network::Lane::kForward:
      return loop_->receive_forwarded(from, std::move(frame));
    case Network::Lane::kSnapshot:
      if (is_piece_request(as_bytes(frame))) return snapshots_->serve(from, std::move(frame));
      return receiver_->take(from, std::move(frame));
  }
}

void MemberOf::on_unreachable(uint64_t peer) {
  loop_->unreachable(peer);
  receiver_->unreachable(peer);
}

void MemberOf::on_removed() { failure_.stop({Code::kFailedPrecondition, kErrorRemoved}); }

void MemberOf::on_other_folder() { failure_.stop({Code::kFailedPrecondition, other_folder(member_id())}); }

// Not from what is applied here so far: one that was removed and added again must not hear of its former id, under
// which it has voted and acknowledged what it has forgotten.
void MemberOf::describe_cluster(std::function<void(Bytes)> answer) {
  linearize([this, answer = std::move(answer)](const Status& status) {
    answer(status ? describe(cluster_id(), applier_->members()) : Bytes());
  });
}

// The loop's thread, and connect().
void MemberOf::tell_network() {
  if (!network_) return;
  std::vector<Network::Peer> peers;
  for (const apply::Member& member : applier_->members()) {
    if (member.id != member_id()) peers.push_back({member.id, member.peer_urls, member.folder_id});
  }
  network_->set_peers(std::move(peers), applier_->removed_members());
}

void MemberOf::make_snapshot(uint64_t to, uint64_t index_min) {
  snapshots_->ask(index_min, [this, to](Result<SnapshotInfo> made) {
    if (!made) {
      log_warn("a snapshot for a member that lags cannot be made", {{"to", to}, {"error", made.error().message}});
      return loop_->snapshot_made(to, std::nullopt);
    }
    log_info("a snapshot is offered to a member that lags",
             {{"to", to}, {"index", made->at.index}, {"bytes", made->bytes}});
    loop_->snapshot_made(to, raft::SnapshotPoint{made->at.index, made->at.term});
  });
}

void MemberOf::snapshot_built(const SnapshotReceiver::Built& built) {
  raft::Membership membership;
  if (const auto members = apply::Members::parse(built.membership)) membership = membership_of(members->list());
  loop_->install({built.at.index, built.at.term}, std::move(membership), [this, at = built.at](bool wanted) {
    if (wanted) return around_.on_replace(at);
    receiver_->discard();
  });
}

}  // namespace member
