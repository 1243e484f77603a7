// What a link says to the operator when it cannot reach its peer or is refused by it, and what to do about it.
#include "base/log.h"
#include "peer/link.h"

namespace peer {

bool Link::log_due(const std::string& what) {
  // All lanes share one message.
  return core_.log_limit.due(what + " " + id_text(peer_), SteadyClock::now());
}

void Link::failed(const Error& error) {
  if (!log_due("dial")) return;
  log_warn("cannot reach a peer; trying on", {{"peer", id_text(peer_)}, {"url", url()}, {"error", error.message}});
}

void Link::refused(const Answer& answer) {
  const std::string peer = id_text(peer_);
  const std::string own = id_text(core_.options.member_id);
  const TimePoint now = SteadyClock::now();
  switch (answer.verdict) {
    case Verdict::kAccepted:
      return;
    case Verdict::kWrongCluster:
      if (!log_due("cluster")) return;
      return log_error(
          "a peer belongs to another cluster; check --initial-cluster, --initial-cluster-token and the data folder of "
          "both members",
          {{"peer", peer},
           {"url", url()},
           {"own_cluster", id_text(core_.options.cluster_id)},
           {"its_cluster", id_text(answer.cluster)}});
    case Verdict::kWrongMember:
      if (!log_due("member")) return;
      return log_error(
          "another member answers at a peer's URL; correct the URL with `member update`, or start the right member "
          "there",
          {{"peer", peer}, {"url", url()}, {"found", id_text(answer.member)}});
    case Verdict::kUnknownSender:
      // At a start the other one may not know its cluster yet, and a new member joins before everybody heard of it.
      if (unknown_since_ == TimePoint()) unknown_since_ = now;
      if (now - unknown_since_ < kUnknownNormal || !log_due("unknown")) return;
      return log_warn(
          "a peer does not know this member; if that lasts, add it with `member add` or start it with the member list "
          "of its cluster",
          {{"peer", peer}, {"url", url()}, {"own_id", own}});
    case Verdict::kRemoved:
      if (log_due("removed")) {
        log_error(
            "peers say that this member was removed from the cluster; to take part again, empty its data folder and "
            "add it as a new member",
            {{"peer", peer}, {"own_id", own}});
      }
      if (!std::exchange(core_.told_removed, true)) core_.receiver->on_removed();
      return;
    case Verdict::kOtherFolder:
      if (log_due("folder")) {
        log_error("peers know this member by another data folder, which has what it promised",
                  {{"peer", peer}, {"own_id", own}});
      }
      if (!std::exchange(core_.told_removed, true)) core_.receiver->on_other_folder();
      return;
    case Verdict::kTooNew:
      if (!log_due("version")) return;
      return log_error("a peer's version is too old for this member; upgrade it, or start the version before this one",
                       {{"peer", peer}, {"url", url()}, {"its_words", answer.text.substr(0, kRefusalTextBytesMax)}});
    case Verdict::kNotUnderstood:
      if (!log_due("words")) return;
      return log_error("a peer does not understand this member; check the versions of both",
                       {{"peer", peer}, {"url", url()}, {"its_words", answer.text.substr(0, kRefusalTextBytesMax)}});
  }
}

}  // namespace peer
