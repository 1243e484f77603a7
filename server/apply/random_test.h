// Random entries over few keys and leases, so that they meet; well formed ones mostly.
#pragma once

#include <random>
#include <string>

#include "api/entry.pb.h"
#include "apply/build_test.h"
#include "apply/entry_version.h"

namespace apply {

class RandomEntries {
 public:
  explicit RandomEntries(unsigned seed) : random_(seed) {}

  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  bool one_in(int n) { return pick(n) == 0; }

  // `index`: of the entry; revisions are guessed from it.
  conclavepb::Entry next(uint64_t index, uint64_t term) {
    conclavepb::Entry entry;
    entry.set_version(kEntryVersion);
    entry.set_request_id(index);
    entry.set_proposer(1);
    about_ = static_cast<int>(index);
    const int kind = pick(100);
    if (kind < 35) {
      *entry.mutable_put() = put();
    } else if (kind < 45) {
      *entry.mutable_delete_range() = erase();
    } else if (kind < 78) {
      *entry.mutable_txn() = txn(3);
    } else if (kind < 81) {
      entry.mutable_compaction()->set_revision(pick(about_ / 2 + 2) - 1);
      entry.mutable_compaction()->set_physical(one_in(2));
    } else if (kind < 88) {
      entry.mutable_lease_grant()->set_id(pick(5));
      entry.mutable_lease_grant()->set_ttl(one_in(10) ? 9'000'000'001 : pick(100));
    } else if (kind < 91) {
      entry.mutable_lease_revoke()->set_id(1 + pick(5));
      if (one_in(2)) entry.mutable_lease_revoke()->set_term(term - static_cast<uint64_t>(pick(2)));
    } else if (kind < 94) {
      if (one_in(2)) entry.mutable_lease_checkpoint()->set_term(term - static_cast<uint64_t>(pick(2)));
      for (int items = pick(4); items > 0; --items) {
        auto* item = entry.mutable_lease_checkpoint()->add_items();
        item->set_id(1 + pick(5));
        item->set_remaining_ttl(pick(50) - 5);
      }
    } else if (kind < 98) {
      auto* alarm = entry.mutable_alarm();
      alarm->set_action(one_in(4) ? etcdserverpb::AlarmRequest::ACTIVATE : etcdserverpb::AlarmRequest::DEACTIVATE);
      alarm->set_alarm(one_in(4) ? etcdserverpb::CORRUPT : etcdserverpb::NOSPACE);
      alarm->set_memberid(1);
    } else {
      entry.mutable_member_attributes()->set_id(static_cast<uint64_t>(pick(3)));
      entry.mutable_member_attributes()->set_name(key());
    }
    return entry;
  }

  std::string key() {
    if (one_in(150)) return "";
    std::string text(1, static_cast<char>('a' + pick(5)));
    if (one_in(2)) text += static_cast<char>('a' + pick(3));
    return text;
  }
  std::string end() { return one_in(2) ? "" : one_in(6) ? build::kOpenEnd : key(); }

  etcdserverpb::PutRequest put() {
    auto request =
        build::put(key(), one_in(6) ? std::string() : std::string(1 + pick(20), static_cast<char>(pick(256))));
    if (one_in(3)) request.set_lease(pick(6));
    request.set_prev_kv(one_in(3));
    if (one_in(8)) {
      request.set_ignore_value(true);
      if (!one_in(10)) request.clear_value();
    }
    if (one_in(8)) {
      request.set_ignore_lease(true);
      if (!one_in(10)) request.clear_lease();
    }
    return request;
  }
  etcdserverpb::DeleteRangeRequest erase() { return build::erase(key(), end(), one_in(2)); }
  etcdserverpb::RangeRequest range() {
    auto request = build::range(key(), end(), one_in(3) ? pick(about_ + 2) - 1 : 0);
    request.set_limit(pick(4) - 1);
    if (one_in(3)) request.set_sort_target(static_cast<etcdserverpb::RangeRequest::SortTarget>(pick(5)));
    if (one_in(3)) request.set_sort_order(static_cast<etcdserverpb::RangeRequest::SortOrder>(pick(3)));
    if (one_in(100)) request.set_sort_order(static_cast<etcdserverpb::RangeRequest::SortOrder>(9));
    request.set_keys_only(one_in(5));
    request.set_count_only(one_in(5));
    if (one_in(5)) request.set_min_mod_revision(pick(about_ + 1));
    if (one_in(5)) request.set_max_create_revision(pick(about_ + 1));
    return request;
  }
  etcdserverpb::Compare compare() {
    etcdserverpb::Compare made;
    made.set_key(key());
    if (one_in(3)) made.set_range_end(end());
    made.set_target(static_cast<etcdserverpb::Compare::CompareTarget>(pick(6)));
    made.set_result(static_cast<etcdserverpb::Compare::CompareResult>(pick(one_in(20) ? 9 : 4)));
    switch (pick(6)) {
      case 0:
        made.set_version(pick(5));
        break;
      case 1:
        made.set_create_revision(pick(about_ + 1));
        break;
      case 2:
        made.set_mod_revision(pick(about_ + 1));
        break;
      case 3:
        made.set_value(key());
        break;
      case 4:
        made.set_lease(pick(6));
        break;
      default:
        break;
    }
    return made;
  }
  etcdserverpb::RequestOp operation(int depth) {
    const int kind = pick(100);
    if (kind == 0) return {};
    if (kind < 30) return build::op(range());
    if (kind < 65) return build::op(put());
    if (kind < 80 || depth == 0) return build::op(erase());
    return build::op(txn(depth - 1));
  }
  etcdserverpb::TxnRequest txn(int depth) {
    etcdserverpb::TxnRequest request;
    for (int count = pick(3); count > 0; --count) *request.add_compare() = compare();
    for (int count = pick(4); count > 0; --count) *request.add_success() = operation(depth);
    for (int count = pick(4); count > 0; --count) *request.add_failure() = operation(depth);
    return request;
  }

 private:
  std::mt19937 random_;
  int about_ = 0;
};

}  // namespace apply
