#include <algorithm>
#include <utility>

#include "mvcc/parts.h"

namespace mvcc {

Result<bool> Compactor::step(store::WriteTxn& txn, int64_t compacted, int rows_max) {
  CHECK(rows_max > 0, rows_max);
  accept();
  if (!target_) {
    if (finished_ >= compacted) return true;
    // A pass that is under way is finished first: frequent compactions would otherwise keep it from getting to the end.
    target_ = compacted;
    resume_.clear();
    above_ = 0;
    walked_ = false;
  }
  if (!walked_ && heap_.empty()) walking_ = true;
  if (walking_) collect();
  if (walking_) return false;
  while (!heap_.empty() && slice_.size() < static_cast<size_t>(rows_max)) {
    TRY(txn.delete_row(heap_.front().up_to));
    std::pop_heap(heap_.begin(), heap_.end(), Later());
    slice_.push_back(heap_.back());
    heap_.pop_back();
  }
  return walked_ && heap_.empty() && *target_ >= compacted;
}

void Compactor::collect() {
  int visited = 0;
  size_t noted = 0;
  walked_ = true;
  std::string resume;
  store::RowId above = 0;
  const Interval rest{.from = resume_, .to = {}, .single = false, .unbounded = true};
  parts_.index.each(rest, [&](KeyIndex::Entry& entry) {
    if (visited++ == options_.compaction_visited_keys_max || noted == options_.compaction_noted_rows_max) {
      resume = entry.key();
      walked_ = false;
      return false;
    }
    if (!entry.may_drop(*target_)) return true;
    const store::RowId behind = visited == 1 && entry.key() == resume_ ? above_ : 0;
    const size_t room = options_.compaction_noted_rows_max - noted;
    const std::vector<Stamp> drop = KeyIndex::droppable(entry, *target_, behind, room);
    noted += drop.size();
    for (const Stamp stamp : drop) {
      heap_.push_back({&entry, stamp.id()});
      std::push_heap(heap_.begin(), heap_.end(), Later());
    }
    if (drop.size() < room) return true;
    resume = entry.key();
    above = drop.back().id();
    walked_ = false;
    return false;
  });
  resume_ = std::move(resume);
  above_ = above;
  walking_ = !walked_ && heap_.size() < options_.compaction_heap_rows_max;
}

void Compactor::accept() {
  if (!slice_.empty()) parts_.index.forget(slice_, *target_);
  slice_.clear();
  if (target_ && walked_ && heap_.empty()) {
    finished_ = std::max(finished_, *target_);
    target_.reset();
    heap_.shrink_to_fit();  // up to 8 MB that the next days may not need
  }
}

void Compactor::undo() {
  for (const KeyIndex::Trim& trim : slice_) {
    heap_.push_back(trim);
    std::push_heap(heap_.begin(), heap_.end(), Later());
  }
  slice_.clear();
}

}  // namespace mvcc
