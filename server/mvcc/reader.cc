// Why a reader is consistent although index, cache and store change under it:
// - It reads at a published revision R. Entries above R are invisible (Entry::at), and those at or below R are never
// changed:
//   revisions only grow. The cache is by row id, and a row never changes.
// - Only compaction takes away what is visible at R, and only with a target C > R. Before the index forgets, its floor
// is
//   raised to C under the same lock, and each slice compares the floor with R under that lock. Before the store
//   deletes, C is published; so a view that misses a row was opened after C was published, and one look at the
//   published step right after opening the view tells. Both cases end as `stale`, never as a wrong answer.
// - The view is opened after R was published and so after its commit: it has all rows at or below R that were not
// compacted.
#include <utility>

#include "mvcc/parts.h"

namespace mvcc {
namespace {

// Each time again needs a compaction that passes in between.
constexpr int kStaleRetriesMax = 16;
// Stepping over a row that is not wanted is some 5 to 10 times cheaper than finding the next one from the root.
constexpr int kSkippedRowsMax = 8;

class StepReader final : public Reader, private Rows {
 public:
  explicit StepReader(Parts& parts) : parts_(parts), at_(parts.published()) {}

  const Published& at() const override { return at_; }
  Status range(const etcdserverpb::RangeRequest& request, etcdserverpb::RangeResponse* response) override;
  Result<KeyValuePtr> get(std::string_view key, int64_t revision) override;
  Status history(int64_t from, int64_t to, const std::function<bool(std::string_view key)>& wanted,
                 const std::function<bool(EventBatch)>& visit) override;

 private:
  template <class Attempt>
  Status attempt_at(int64_t asked, Attempt&& attempt);
  Status open_view();
  Result<bool> load(int64_t revision, std::span<const store::RowId> ids, bool heads_only,
                    const std::function<void(size_t, const store::RowView&)>& visit) override;
  Source source() { return {parts_.index, parts_.cache, *this}; }

  Parts& parts_;
  Published at_;
  std::unique_ptr<store::ReadTxn> view_;
  int64_t view_compacted_ = -1;  // published right after the view was opened: rows below it may be missing
};

// attempt(revision) says false when a compaction went past that revision.
template <class Attempt>
Status StepReader::attempt_at(int64_t asked, Attempt&& attempt) {
  for (int i = 0; i < kStaleRetriesMax; ++i) {
    if (asked > at_.revision) return fail(Code::kOutOfRange, kErrorFutureRevision);
    if (asked > 0 && asked < at_.compacted) return fail(Code::kOutOfRange, kErrorCompacted);
    TRY_ASSIGN(const bool done, attempt(asked > 0 ? asked : at_.revision));
    if (done) return {};
    if (asked > 0) return fail(Code::kOutOfRange, kErrorCompacted);
    view_.reset();
    at_ = parts_.published();
  }
  return fail(Code::kUnavailable, "mvcc: compactions passed this read each time it was tried");
}

Status StepReader::range(const etcdserverpb::RangeRequest& request, etcdserverpb::RangeResponse* response) {
  return attempt_at(request.revision(), [&](int64_t revision) {
    response->clear_kvs();
    return execute_range(source(), revision, request, response);
  });
}

Result<KeyValuePtr> StepReader::get(std::string_view key, int64_t revision) {
  KeyValuePtr kv;
  TRY(attempt_at(revision, [&](int64_t at) -> Result<bool> {
    Found found;
    if (!parts_.index.find_at(key, at, &found)) return false;
    if (found.id == 0) return true;
    return load_value(source(), at, found, &kv);
  }));
  return kv;
}

Status StepReader::open_view() {
  if (view_ != nullptr) return {};
  TRY_ASSIGN(view_, parts_.store.read());
  view_compacted_ = parts_.published().compacted;
  return {};
}

Result<bool> StepReader::load(int64_t revision, std::span<const store::RowId> ids, bool heads_only,
                              const std::function<void(size_t, const store::RowView&)>& visit) {
  TRY(open_view());
  if (revision < view_compacted_) return false;
  for (size_t next = 0; next < ids.size();) {
    const size_t begin = next;
    int skipped = 0;
    TRY(view_->scan(ids[begin], ids.back() + 1, heads_only, [&](const store::RowView& row) {
      if (row.id < ids[next]) return ++skipped < kSkippedRowsMax;
      if (row.id > ids[next]) return false;  // missing: the next scan begins with it and does not find it either
      visit(next, row);
      skipped = 0;
      return ++next < ids.size();
    }));
    if (next == begin) {
      return fail(Code::kDataLoss, "mvcc: row " + std::to_string(ids[next]) + " of the key index is not in the store");
    }
  }
  return true;
}

Status StepReader::history(int64_t from, int64_t to, const std::function<bool(std::string_view key)>& wanted,
                           const std::function<bool(EventBatch)>& visit) {
  TRY(open_view());
  from = std::max<int64_t>(from, 1);
  if (from < std::max(at_.compacted, view_compacted_)) return fail(Code::kOutOfRange, kErrorCompacted);
  to = std::min(to, at_.revision);
  if (from > to) return {};
  EventBatch batch;
  bool go_on = true;
  TRY(view_->scan(row_id({from, 0}), row_id({to + 1, 0}), false, [&](const store::RowView& row) {
    const int64_t revision = revision_of(row.id).main;
    if (revision != batch.revision) {
      if (!batch.events.empty()) go_on = visit(std::exchange(batch, {}));
      if (!go_on) return false;
      batch.revision = revision;
    }
    if (!wanted(row.key)) return true;
    batch.events.push_back({row.version == 0, make_key_value(row)});
    return true;
  }));
  if (go_on && !batch.events.empty()) visit(std::move(batch));
  return {};
}

}  // namespace

std::unique_ptr<Reader> make_reader(Parts& parts) { return std::make_unique<StepReader>(parts); }

}  // namespace mvcc
