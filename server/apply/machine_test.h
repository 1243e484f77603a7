// An applier with everything below it, for tests: entries in, answers out as short texts.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apply/applier.h"
#include "apply/build_test.h"
#include "apply/fakes_test.h"
#include "apply/show_test.h"

namespace apply {

class Machine {
 public:
  using OpenStore = std::function<std::unique_ptr<store::Store>()>;

  // On a fake store; `store()` and `content` give access to it.
  Machine() : content(std::make_shared<fake::Content>()) {
    open_store_ = [this] { return std::make_unique<fake::Store>(content); };
    open();
  }
  explicit Machine(OpenStore open_store) : open_store_(std::move(open_store)) { open(); }

  void open() {
    applier.reset();
    mvcc.reset();
    any_store.reset();
    any_store = open_store_();
    leases = std::make_unique<lease::Table>();
    auto rows = any_store->load_leases();
    ASSERT_TRUE(rows);
    leases->load(*rows);
    auto opened =
        mvcc::Mvcc::open(*any_store, {}, [this](std::string_view key, int64_t id) { leases->attach(id, key); });
    ASSERT_TRUE(opened) << opened.error().message;
    mvcc = std::move(*opened);
    leases->commit();
    applier = std::make_unique<Applier>(
        Applier::Parts{.store = *any_store, .mvcc = *mvcc, .leases = *leases, .hub = hub, .member_id = member_id});
  }
  fake::Store& store() { return static_cast<fake::Store&>(*any_store); }

  // The next entry of the log.
  LogEntry log(const conclavepb::Entry& entry) {
    return {.index = ++index,
            .term = term,
            .type = EntryType::kCommand,
            .data = std::make_shared<const Bytes>(entry.SerializeAsString())};
  }
  static conclavepb::Entry command(const etcdserverpb::PutRequest& r) {
    return make([&](auto& e) { *e.mutable_put() = r; });
  }
  static conclavepb::Entry command(const etcdserverpb::DeleteRangeRequest& r) {
    return make([&](auto& e) { *e.mutable_delete_range() = r; });
  }
  static conclavepb::Entry command(const etcdserverpb::TxnRequest& r) {
    return make([&](auto& e) { *e.mutable_txn() = r; });
  }
  static conclavepb::Entry compaction(int64_t revision, bool physical = false) {
    return make([&](auto& e) {
      e.mutable_compaction()->set_revision(revision);
      e.mutable_compaction()->set_physical(physical);
    });
  }
  static conclavepb::Entry grant(int64_t id, int64_t ttl = 60) {
    return make([&](auto& e) {
      e.mutable_lease_grant()->set_id(id);
      e.mutable_lease_grant()->set_ttl(ttl);
    });
  }
  static conclavepb::Entry revoke(int64_t id, uint64_t of_term = 0) {
    return make([&](auto& e) {
      e.mutable_lease_revoke()->set_id(id);
      e.mutable_lease_revoke()->set_term(of_term);
    });
  }
  static conclavepb::Entry checkpoint(std::vector<std::pair<int64_t, int64_t>> items, uint64_t of_term = 0) {
    return make([&](auto& e) {
      e.mutable_lease_checkpoint()->set_term(of_term);
      for (auto [id, remaining] : items) {
        auto* item = e.mutable_lease_checkpoint()->add_items();
        item->set_id(id);
        item->set_remaining_ttl(remaining);
      }
    });
  }
  static conclavepb::Entry alarm(etcdserverpb::AlarmRequest::AlarmAction action, etcdserverpb::AlarmType kind,
                                 uint64_t member = 1) {
    return make([&](auto& e) {
      e.mutable_alarm()->set_action(action);
      e.mutable_alarm()->set_alarm(kind);
      e.mutable_alarm()->set_memberid(member);
    });
  }

  // Applies one entry in a batch of its own.
  std::string run(const conclavepb::Entry& entry) {
    const std::vector<LogEntry> one{log(entry)};
    auto applied = applier->apply(one);
    if (!applied) {
      --index;
      return "stops: " + applied.error().message;
    }
    last = std::move(*applied);
    if (last.outcomes.empty()) return "later";
    return show(last.outcomes.front().response);
  }
  template <class Request>
  std::string run(const Request& request) {
    return run(command(request));
  }
  // As a client reads it.
  std::string read(const etcdserverpb::RangeRequest& request) {
    etcdserverpb::RangeResponse response;
    auto reader = mvcc->reader();
    if (Status done = reader->range(request, &response); !done) return show(done.error());
    response.mutable_header()->set_revision(reader->at().revision);
    return show(response);
  }
  // Steps until there is nothing to do; the answers that came.
  std::string settle() {
    std::string text;
    for (int slices = 0; slices < 10'000; ++slices) {
      auto slice = applier->step();
      if (!slice) return text + "error: " + slice.error().message;
      for (const Outcome& outcome : slice->outcomes) {
        text += std::to_string(outcome.request_id) + " " + show(outcome.response) + " ";
      }
      if (!slice->more) return text;
    }
    return text + "endless";
  }

  std::shared_ptr<fake::Content> content;
  std::unique_ptr<store::Store> any_store;
  std::unique_ptr<mvcc::Mvcc> mvcc;
  std::unique_ptr<lease::Table> leases;
  fake::Hub hub;
  std::unique_ptr<Applier> applier;
  Applied last;
  uint64_t index = 0;
  uint64_t term = 3;
  uint64_t member_id = 0;

 private:
  template <class Fill>
  static conclavepb::Entry make(const Fill& fill) {
    conclavepb::Entry entry;
    entry.set_version(kEntryVersion);
    entry.set_request_id(77);
    entry.set_proposer(1);
    fill(entry);
    return entry;
  }
  OpenStore open_store_;
};

}  // namespace apply
