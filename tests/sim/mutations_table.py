"""Deliberate faults for mutations.py: small textual edits, each of which breaks a promise of the server.

A row: name, what it breaks, the suites that may catch it (the first one that does is enough), and edits
(file, old text, new text); the old text is there exactly once. tests/sim/mutations.md describes them.
"""

from collections import namedtuple

Mutation = namedtuple("Mutation", "name what suites edits")

RAFT = ("raft",)  # cores alone, under server/raft/faults_test.cc; and the whole cluster
RAFT_AND_CLUSTER = ("raft", "cluster")
MEMBER = ("power", "cluster", "damage")
CLUSTER = ("cluster",)
RECORD = ("record",)
MEMBERS = ("members", "cluster")  # with members that come and go, and so with more snapshots

TABLE = [
    # --- Elections
    Mutation("vote_not_persisted", "a member forgets at a crash whom it voted for", RAFT, [
        ("server/raft/ready.cc", "    handed_state_ = *ready.hard_state;\n",
         "    handed_state_ = *ready.hard_state;\n    ready.hard_state->vote = kNobody;\n"),
    ]),
    Mutation("votes_twice", "two candidates of a term get the vote", RAFT_AND_CLUSTER, [
        ("server/raft/election.cc",
         "const bool free_to_vote = vote_ == message.from || (vote_ == kNobody && leader_ == kNobody);",
         "const bool free_to_vote = leader_ == kNobody;"),
    ]),
    Mutation("votes_for_shorter_log", "a candidate without all committed entries is elected", RAFT_AND_CLUSTER, [
        ("server/raft/election.cc",
         "reply.reject = !free_to_vote || !log_.is_outdated_by(message.log_index, message.log_term);",
         "reply.reject = !free_to_vote;"),
    ]),
    Mutation("campaign_over_conf_change",
             "campaigns with a membership change between applied and committed", RAFT_AND_CLUSTER, [
        ("server/raft/election.cc", "if (log_.at(index).type == EntryType::kMembership) return false;",
         "if (log_.at(index).index == 0) return false;"),
    ]),
    # --- The log
    Mutation("answer_before_sync", "votes and acknowledgements leave before what they promise is durable",
             RAFT_AND_CLUSTER, [
        ("server/raft/ready.cc",
         "if (handed_ == log_.last_index()) ready.messages_after_sync.swap(messages_after_sync_);",
         "for (Message& message : messages_after_sync_) messages_now_.push_back(std::move(message));\n"
         "  messages_after_sync_.clear();"),
    ]),
    Mutation("leader_counts_unsynced", "the leader counts itself before its own append is durable", RAFT_AND_CLUSTER, [
        ("server/raft/replication.cc",
         "for (const uint64_t voter : membership_.voters) matches.push_back(progress_.at(voter).match);\n"
         "  const uint64_t index",
         "for (const uint64_t voter : membership_.voters) {\n"
         "    matches.push_back(voter == config_.id ? log_.last_index() : progress_.at(voter).match);\n  }\n"
         "  const uint64_t index"),
    ]),
    Mutation("commits_older_term", "an entry of an older term is committed by counting (paper, figure 8)",
             RAFT_AND_CLUSTER, [
        ("server/raft/replication.cc",
         "if (index > commit_ && log_.term_at(index) == term_) advance_commit(index);",
         "if (index > commit_) advance_commit(index);"),
    ]),
    Mutation("conflict_not_truncated", "entries that conflict with the leader's stay", RAFT_AND_CLUSTER, [
        ("server/raft/replication.cc", "if (log_.matches(entry.index, entry.term)) continue;",
         "if (entry.index <= log_.last_index()) continue;"),
    ]),
    Mutation("no_log_matching", "entries are appended behind one that does not match", RAFT_AND_CLUSTER, [
        ("server/raft/replication.cc", "if (!log_.matches(message.log_index, message.log_term)) {",
         "if (message.log_index > log_.last_index()) {"),
    ]),
    Mutation("handed_over_by_index", "a hand-over counts as durable though a conflict rewrote its entries",
             RAFT_AND_CLUSTER, [
        ("server/raft/replication.cc",
         "for (HandOver& hand_over : hand_overs_) hand_over.last_index = std::min(hand_over.last_index, index - 1);",
         ""),
    ]),
    Mutation("applied_ahead_of_sync", "a member applies what its own log does not hold durably", RAFT_AND_CLUSTER, [
        ("server/raft/ready.cc", "const uint64_t to = std::min(commit_, durable_);", "const uint64_t to = commit_;"),
        ("server/raft/node.cc", "CHECK(delivered_ <= durable_, delivered_, durable_);", ""),
    ]),
    Mutation("commit_beyond_append", "a follower takes the leader's commit index for entries it has not compared",
             RAFT_AND_CLUSTER, [
        ("server/raft/replication.cc", "advance_commit(std::min(message.commit, last_new));",
         "advance_commit(std::min(message.commit, log_.last_index()));"),
        # A leader that goes back exactly to where the logs agree never sends less than the first conflict.
        ("server/raft/replication.cc",
         "progress.next = std::max(std::min(message.log_index, agree + 1), progress.match + 1);",
         "progress.next = std::max(std::min(message.log_index, agree), progress.match + 1);"),
    ]),
    Mutation("last_term_zero", "the last term of an emptied log is 0", RAFT_AND_CLUSTER, [
        ("server/raft/log.cc", "    base_term_ = entries_.front().term;\n", "    base_term_ = 0;\n"),
    ]),
    # --- Membership
    Mutation("two_conf_changes", "two membership changes at once", RAFT_AND_CLUSTER, [
        ("server/raft/propose.cc", "if (memberships > 1 || is_membership_pending()) {", "if (memberships > 1) {"),
    ]),
    Mutation("learners_count", "an acknowledgement of a learner counts for the commit index", RAFT_AND_CLUSTER, [
        ("server/raft/replication.cc",
         "for (const uint64_t voter : membership_.voters) matches.push_back(progress_.at(voter).match);\n"
         "  const uint64_t index = majority_value(std::move(matches));",
         "for (const auto& [id, progress] : progress_) matches.push_back(progress.match);\n"
         "  std::sort(matches.begin(), matches.end());\n"
         "  matches.erase(matches.begin(), matches.end() - static_cast<long>(membership_.voters.size()));\n"
         "  const uint64_t index = majority_value(std::move(matches));"),
    ]),
    # --- Reads
    Mutation("read_without_quorum", "ReadIndex without asking whether this member still leads", RAFT_AND_CLUSTER, [
        ("server/raft/reads.cc", "      majority_value(std::move(rounds)),", "      reads_.round(),"),
    ]),
    Mutation("read_before_first_commit", "ReadIndex before an entry of the own term is committed", RAFT_AND_CLUSTER, [
        ("server/raft/reads.cc", "if (reads_.has_arrived() && committed_in_term()) {", "if (reads_.has_arrived()) {"),
    ]),
    Mutation("read_before_applied", "a linearizable read is served before its index is applied", CLUSTER, [
        ("server/member/loop.cc", "if (!it->second.index || *it->second.index > applied_index_) {",
         "if (!it->second.index) {"),
    ]),
    Mutation("read_opened_before_index", "a read's view is opened before its index is known", CLUSTER, [
        ("server/member/member_requests.cc",
         "auto later = [this, done](Status status) { reads_->push([done, status] { done(status); }); };",
         "auto early = std::make_shared<std::unique_ptr<mvcc::Reader>>(mvcc_->reader());\n"
         "  auto later = [this, done, early](Status status) {\n"
         "    reads_->push([this, done, status, early] {\n"
         "      opened_early_ = std::move(*early);\n"
         "      done(status);\n"
         "      opened_early_.reset();\n"
         "    });\n"
         "  };"),
        ("server/member/member_of.h", "reader() override { return mvcc_->reader(); }",
         "reader() override { return opened_early_ ? std::move(opened_early_) : mvcc_->reader(); }\n"
         "  std::unique_ptr<mvcc::Reader> opened_early_;"),
    ]),
    # --- Between members
    Mutation("described_without_read", "who takes part is told from what this member has applied so far", RECORD, [
        ("server/member/member_network.cc",
         "  linearize([this, answer = std::move(answer)](const Status& status) {\n"
         "    answer(status ? describe(cluster_id(), applier_->members()) : Bytes());\n  });",
         "  answer(describe(cluster_id(), applier_->members()));"),
    ]),
    Mutation("forwarded_twice", "a forwarded proposal is proposed twice", CLUSTER, [
        ("server/member/loop_requests.cc",
         "for (Command& command : asked->proposals) proposals_forwarded_.push_back(std::move(command));",
         "for (Command& command : asked->proposals) proposals_forwarded_.insert(proposals_forwarded_.end(), 2, command);"),
    ]),
    Mutation("snapshot_without_last_entry", "a snapshot says that it contains one entry more than it has", MEMBERS, [
        ("server/member/snapshot_make.cc", "TRY_ASSIGN(meta, txn->whole_meta());",
         "TRY_ASSIGN(meta, txn->whole_meta());\n    ++meta.applied_index;"),
    ]),
    Mutation("snapshot_without_leases", "the leases are left out of a snapshot", MEMBERS, [
        ("server/member/snapshot_make.cc", "for (const store::LeaseRow& lease : leases) {",
         "leases.clear();\n  for (const store::LeaseRow& lease : leases) {"),
    ]),
    Mutation("snapshot_not_synced", "a snapshot's store is put in force before it is durable", MEMBERS, [
        ("server/member/snapshot_install.cc", "  TRY(wal->sync());\n  return disk_.sync_directory(folder);",
         "  return {};"),
        ("server/member/generation.cc", "  TRY(file->sync());\n  file.reset();", "  file.reset();"),
    ]),
    Mutation("log_kept_over_snapshot", "a log that ends before the snapshot, or conflicts with it, is kept", MEMBERS, [
        ("server/member/generation.cc",
         "  if (!in_log && !is_base) batch.snapshot = wal::SnapshotRecord{"
         ".index = index, .term = term, .data = store.membership};\n", ""),
    ]),
    Mutation("snapshot_promises_more", "a snapshot is offered as one entry more than it has", MEMBERS, [
        ("server/member/member_network.cc", "raft::SnapshotPoint{made->at.index, made->at.term}",
         "raft::SnapshotPoint{made->at.index + 1, made->at.term}"),
    ]),
    # --- Disk
    Mutation("log_not_synced", "the log is written and not synced", MEMBER, [
        ("server/wal/wal.cc", "if (Status status = file->sync(); !status) return stop_at(std::move(status.error()));", ""),
    ]),
    Mutation("log_dropped_early", "the log forgets what the store has not got durably", MEMBER, [
        ("server/member/checkpoint_stage.cc", "job.drop_before = mark_.applied - parts_.entries_kept;",
         "job.drop_before = mark_.applied + 40;"),
    ]),
    Mutation("failed_sync_ignored", "a failed sync of the log is taken for done", MEMBER, [
        ("server/wal/wal.cc", "if (Status status = file->sync(); !status) return stop_at(std::move(status.error()));",
         "(void)file->sync();"),
    ]),
    Mutation("store_wal_trusted", "what a failed sync left in the store's -wal counts as durable after a restart",
             ("store", "members"), [
        ("server/store/store.cc", "store->distrust_wal(wal_bytes_of(scan.committed));", ""),
    ]),
    # --- Apply
    Mutation("quota_by_local_size", "apply refuses writes by the size of this member's own store", CLUSTER, [
        ("server/apply/execute.h", "  store::WriteTxn& txn;\n", "  bool is_full = false;\n  store::WriteTxn& txn;\n"),
        ("server/apply/applier.cc", "Batch batch{.txn = *txn,",
         "Batch batch{.is_full = state.parts.store.stats().size_in_use_bytes > 120'000,\n              .txn = *txn,"),
        ("server/apply/execute.cc", "if (filling && batch.alarms.no_space()) return",
         "if (filling && (batch.is_full || batch.alarms.no_space())) return"),
    ]),
    Mutation("applied_index_not_with_data", "the applied index is saved a batch late", MEMBER, [
        ("server/apply/applier.cc", "  TRY(batch.txn.set_meta(batch.meta));\n  return batch.txn.commit();\n}\n\nvoid",
         "  store::Meta meta = batch.meta;\n  meta.applied_index = parts.store.meta().applied_index;\n"
         "  TRY(batch.txn.set_meta(meta));\n  return batch.txn.commit();\n}\n\nvoid"),
    ]),
    Mutation("published_before_commit", "readers see a batch whose transaction is not committed", CLUSTER, [
        ("server/apply/applier.cc", "  TRY(batch.txn.set_meta(batch.meta));\n  return batch.txn.commit();\n}\n\nvoid",
         "  TRY(batch.txn.set_meta(batch.meta));\n"
         "  parts.mvcc.publish({.revision = batch.meta.revision,\n"
         "                      .compacted = batch.meta.compacted,\n"
         "                      .applied_index = batch.meta.applied_index,\n"
         "                      .applied_term = batch.meta.applied_term});\n"
         "  return batch.txn.commit();\n}\n\nvoid"),
    ]),
    Mutation("compare_ignored", "a transaction's compares on the value always hold", CLUSTER, [
        ("server/apply/compare.cc",
         "return kv != nullptr && holds(compare, std::string_view(kv->value) <=> operand);", "return kv != nullptr;"),
    ]),
    # --- Leases
    Mutation("revoked_in_another_term", "what was decided on leases in an earlier term counts in a later one", CLUSTER, [
        # A revocation is proposed in the term that decided it, unless the deadlines outlive their term.
        ("server/member/loop.cc", "  if (soft_.role != raft::Role::kLeader) leases_.end_term();\n", ""),
        ("server/apply/execute.cc",
         "if (request.term() != 0 && request.term() != term) return refuse(Code::kFailedPrecondition, kErrorOtherTerm);\n"
         "  auto keys", "(void)term;\n  auto keys"),
    ]),
    Mutation("keepalive_unconfirmed", "keepalives are answered without asking whether this member still leads", CLUSTER, [
        ("server/member/loop_requests.cc", "if (leads() && node_.membership().voters.size() > 1) {",
         "if (leads() && node_.membership().voters.size() > 100) {"),
    ]),
    Mutation("keepalive_while_revoking", "a lease whose revocation is under way is kept alive", MEMBER, [
        ("server/member/lease_keeper.cc", "if (deadlines_.revoking(id)) {  // too late, unless the revocation fails",
         "if (deadlines_.revoking(id)) return done(info->ttl);\n  if (deadlines_.revoking(id)) {"),
    ]),
    Mutation("reset_not_awaited", "the renewal of a checkpointed lease answers before its reset is committed", MEMBER, [
        ("server/member/lease_keeper.cc", "  if (!reset) return done(info->ttl);\n",
         "  if (reset) resets_.push_back(id);\n  if (!reset || reset) return done(info->ttl);\n"),
    ]),
    Mutation("lease_shortened_by_election", "a new leader gives a lease two seconds less than it has", CLUSTER, [
        ("server/member/lease_keeper.cc", "deadlines_.rebuild(table_.list(), now);",
         "deadlines_.rebuild(table_.list(), now - std::chrono::seconds(2));"),
    ]),
    Mutation("lease_forgets_renewal", "a renewal does not move the deadline", MEMBER, [
        ("server/lease/deadlines.cc", "  lease.deadline = now + seconds(lease.ttl);\n  lease.next_checkpoint",
         "  lease.next_checkpoint"),
    ]),
    # --- Watches and compaction
    Mutation("watch_joins_one_off", "a watch that caught up joins the tip one revision late", MEMBER, [
        ("server/watch/catch_up.cc", "        to_tip(watcher, cohort.next);", "        to_tip(watcher, cohort.next + 1);"),
    ]),
    Mutation("watch_resumes_one_off", "a watch whose buffer was full goes on one revision late", MEMBER, [
        ("server/watch/hand_out.cc", "to_blocked(watcher, part->first);", "to_blocked(watcher, part->first + 1);"),
    ]),
    Mutation("compaction_takes_newest", "compaction deletes the newest row below it of a key that is alive", MEMBER, [
        ("server/mvcc/key_index.cc", "if (next.revision() > compacted && !at->tombstone()) return drop;",
         "if (next.revision() > compacted + 1 && !at->tombstone()) return drop;"),
    ]),
]
