#include "rpc/range_read.h"

#include <algorithm>

#include "base/check.h"

namespace rpc {
namespace {

constexpr int64_t kPageBytes = 256 * 1024;  // what a page aims at
constexpr int64_t kPageGrowth = 4;          // in keys, from one page to the next, at most
constexpr int64_t kBlockKeys = 16 * 1024;   // listed at once: some milliseconds, and less than a megabyte of keys

// The first key that is larger.
std::string after(std::string_view key) { return std::string(key) + '\0'; }

}  // namespace

bool RangeRead::in_key_order() const {
  const bool by_key = request_->sort_target() == Request::KEY && request_->sort_order() != Request::DESCEND;
  const bool filtered = request_->min_mod_revision() != 0 || request_->max_mod_revision() != 0 ||
                        request_->min_create_revision() != 0 || request_->max_create_revision() != 0;
  return by_key && !filtered;
}

bool RangeRead::in_one_piece() const { return request_->sort_target() == Request::VALUE && !request_->count_only(); }

void RangeRead::restart() { begun_ = false; }

Result<bool> RangeRead::next(mvcc::Reader& reader, int keys_max, Response* part) {
  CHECK(keys_max > 0);
  if (!begun_) return begin(reader, keys_max, part);
  return request_->keys_only() ? read_keys(reader, part) : read_values(reader, keys_max, part);
}

Result<bool> RangeRead::begin(mvcc::Reader& reader, int keys_max, Response* part) {
  Request list = *request_;
  if (!request_->count_only() && !in_one_piece()) {
    list.set_keys_only(true);
    if (in_key_order() && (list.limit() <= 0 || list.limit() > kBlockKeys)) list.set_limit(kBlockKeys);
  }
  const bool is_answer = list.keys_only() == request_->keys_only();
  Response listed;
  Response& read = is_answer ? *part : listed;
  TRY(reader.range(list, &read));
  begun(reader, read);
  part->mutable_header()->set_revision(reader.at().revision);
  if (is_answer) return took(part);
  set_keys(listed);
  return left_ == 0 ? took(part) : read_values(reader, keys_max, part);
}

void RangeRead::begun(const mvcc::Reader& reader, const Response& read) {
  begun_ = true;
  revision_ = request_->revision() > 0 ? request_->revision() : reader.at().revision;
  count_ = read.count();
  more_ = read.more();
  left_ = read.kvs_size();
  keys_.clear();
  ends_.clear();
  at_ = 0;
  page_keys_ = 0;
  if (!in_key_order() || request_->count_only()) return;
  left_ = request_->limit() > 0 ? std::min(request_->limit(), count_) : count_;
  more_ = left_ < count_;
  if (read.kvs_size() > 0) after_ = after(read.kvs(read.kvs_size() - 1).key());
}

// What the whole answer ends with goes into its last piece.
Result<bool> RangeRead::took(Response* part) {
  part->clear_count();
  part->clear_more();
  left_ -= part->kvs_size();
  CHECK(left_ >= 0, left_);
  if (left_ > 0) return false;
  part->set_count(count_);
  part->set_more(more_);
  return true;
}

Result<bool> RangeRead::read_keys(mvcc::Reader& reader, Response* part) {
  TRY(list_block(reader, part));
  return took(part);
}

Result<bool> RangeRead::read_values(mvcc::Reader& reader, int keys_max, Response* part) {
  if (at_ == ends_.size()) {
    Response listed;
    TRY(list_block(reader, &listed));
    set_keys(listed);
  }
  if (in_key_order()) {
    TRY(read_page(reader, keys_max, part));
  } else {
    TRY(read_one_by_one(reader, part));
  }
  return took(part);
}

// The next keys in key order.
Status RangeRead::list_block(mvcc::Reader& reader, Response* listed) {
  Request list;
  list.set_key(after_);
  list.set_range_end(request_->range_end());
  list.set_keys_only(true);
  list.set_revision(revision_);
  list.set_limit(std::min(kBlockKeys, left_));
  TRY(reader.range(list, listed));
  CHECK(listed->kvs_size() > 0, "the keys of a revision do not change", left_);
  after_ = after(listed->kvs(listed->kvs_size() - 1).key());
  return {};
}

Status RangeRead::read_page(mvcc::Reader& reader, int keys_max, Response* part) {
  int64_t keys = keys_max;
  if (page_keys_ > 0) {
    const int64_t each = std::max<int64_t>(page_bytes_ / page_keys_, 1);
    keys = std::clamp<int64_t>(kPageBytes / each, 1, std::min<int64_t>(page_keys_ * kPageGrowth, keys_max));
  }
  const size_t end = std::min(at_ + static_cast<size_t>(keys), ends_.size());
  Request page;
  page.set_key(std::string(key(at_)));
  page.set_range_end(after(key(end - 1)));
  page.set_revision(revision_);
  TRY(reader.range(page, part));
  page_keys_ = part->kvs_size();
  page_bytes_ = static_cast<int64_t>(part->ByteSizeLong());
  CHECK(page_keys_ == static_cast<int64_t>(end - at_), "the keys of a revision do not change", page_keys_, end - at_);
  at_ = end;
  return {};
}

Status RangeRead::read_one_by_one(mvcc::Reader& reader, Response* part) {
  for (int64_t bytes = 0; at_ < ends_.size() && bytes < kPageBytes; ++at_) {
    TRY_ASSIGN(const mvcc::KeyValuePtr found, reader.get(key(at_), revision_));
    CHECK(found != nullptr, "the keys of a revision do not change", key(at_));
    mvccpb::KeyValue& kv = *part->add_kvs();
    kv.set_key(found->key);
    kv.set_value(found->value);
    kv.set_create_revision(found->create_revision);
    kv.set_mod_revision(found->mod_revision);
    kv.set_version(found->version);
    kv.set_lease(found->lease);
    bytes += static_cast<int64_t>(found->key.size() + found->value.size());
  }
  return {};
}

void RangeRead::set_keys(const Response& listed) {
  keys_.clear();
  ends_.clear();
  at_ = 0;
  for (const auto& kv : listed.kvs()) {
    keys_ += kv.key();
    ends_.push_back(keys_.size());
  }
}

std::string_view RangeRead::key(size_t i) const {
  const size_t begin = i == 0 ? 0 : ends_[i - 1];
  return std::string_view(keys_).substr(begin, ends_[i] - begin);
}

}  // namespace rpc
