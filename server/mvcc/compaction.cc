#include <utility>

#include "mvcc/parts.h"

namespace mvcc {
namespace {

// Keys that one slice looks at (some 200 us when nothing is to be dropped).
constexpr int kVisitedKeysMax = 4096;

}  // namespace

Result<bool> Compactor::step(store::WriteTxn& txn, int64_t compacted, int rows_max) {
  CHECK(rows_max > 0, rows_max);
  accept();
  if (!target_) {
    if (finished_ >= compacted) return true;
    target_ = compacted;
    resume_.clear();
  }

  // A pass that is under way is finished first: a frequent compaction would otherwise keep it from ever getting to the
  // end.
  Slice slice{.target = *target_, .trims = {}, .began_at = resume_, .ends_pass = true};
  std::vector<store::RowId> rows;
  int visited = 0;
  std::string resume;
  parts_.index.each({.from = resume_, .to = {}, .single = false, .unbounded = true}, [&](KeyIndex::Entry& entry) {
    const size_t room = static_cast<size_t>(rows_max) - rows.size();
    if (room == 0 || visited++ == kVisitedKeysMax) {
      resume = entry.key();
      slice.ends_pass = false;
      return false;
    }
    if (!entry.may_drop(*target_)) return true;
    const std::vector<Stamp> drop = KeyIndex::droppable(entry, *target_, room);
    if (drop.empty()) return true;
    for (const Stamp stamp : drop) rows.push_back(stamp.id());
    slice.trims.push_back({&entry, drop.back().id()});
    if (drop.size() < room) return true;
    resume = entry.key();  // it may have more
    slice.ends_pass = false;
    return false;
  });
  for (const store::RowId id : rows) TRY(txn.delete_row(id));
  const bool all_done = slice.ends_pass && slice.target >= compacted;
  resume_ = std::move(resume);
  slice_ = std::move(slice);
  return all_done;
}

void Compactor::accept() {
  if (!slice_) return;
  parts_.index.forget(slice_->trims, slice_->target);
  if (slice_->ends_pass) {
    finished_ = std::max(finished_, slice_->target);
    target_.reset();
  }
  slice_.reset();
}

void Compactor::undo() {
  if (!slice_) return;
  resume_ = std::move(slice_->began_at);
  slice_.reset();
}

}  // namespace mvcc
