// A member that does as it is told, and one client of the services over it, for this folder's tests.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mvcc/member_test.h"
#include "rpc/context.h"

namespace rpc {

class FakeMember final : public member::Member {
 public:
  mvcc::Member data;
  lease::Table lease_table;
  State now;
  std::vector<apply::Member> known;
  std::vector<etcdserverpb::AlarmMember> raised;
  member::Options flags;
  bool whole_quorum = false;
  std::deque<std::function<void(Status)>> reads;  // that wait for their index
  std::vector<std::pair<conclavepb::MembershipChange, member::Done>> changes;
  std::vector<std::pair<uint64_t, std::function<void(Status)>>> transfers;
  std::vector<Error> damages;

  FakeMember() {
    now.member_id = 1;
    now.raft.leader = 1;
    now.ready = true;
    for (const uint64_t id : {1, 2, 3}) {
      const std::string name(1, static_cast<char>('a' + id - 1));
      known.push_back({.id = id, .name = name, .peer_urls = {"http://" + name + ":2380"}, .client_urls = {}});
    }
  }

  Status connect() override { return {}; }
  void start() override {}
  void stop() override {}
  std::vector<member::Stage*> stages() override { return {}; }
  void propose(conclavepb::Entry, member::Done done) override { done(::fail(Code::kUnavailable, "not in this test")); }
  void change_membership(conclavepb::MembershipChange change, member::Done done) override {
    changes.emplace_back(std::move(change), std::move(done));
  }
  void transfer_leadership(uint64_t to, std::function<void(Status)> done) override {
    transfers.emplace_back(to, std::move(done));
  }
  void linearize(std::function<void(Status)> done) override {
    if (whole_quorum) return done({});
    reads.push_back(std::move(done));
  }
  bool linearizable_now() const override { return whole_quorum; }
  std::unique_ptr<mvcc::Reader> reader() override { return data.mvcc().reader(); }
  void keep_alive(int64_t, member::KeptAlive) override {}
  void remaining(int64_t, member::Remaining) override {}
  const lease::Table& leases() const override { return lease_table; }
  int64_t new_lease_id() override { return ++last_lease_; }
  void damaged(const Error& error) override { damages.push_back(error); }
  watch::Hub& watches() override { std::abort(); }
  State state() const override { return now; }
  uint64_t term() const override { return 7; }
  bool is_learner() const override { return now.is_learner; }
  uint64_t cluster_id() const override { return 5; }
  uint64_t member_id() const override { return now.member_id; }
  std::vector<apply::Member> members() const override { return known; }
  std::vector<etcdserverpb::AlarmMember> alarms() const override { return raised; }
  const member::Options& options() const override { return flags; }

 private:
  int64_t last_lease_ = 0;
};

// The answer of one call; empty until it comes.
class Caught final : public http::ReplyTarget, public http::PlainTarget {
 public:
  std::optional<Error> error;
  std::string text;  // of a message, as ShortDebugString shows it; of a plain answer its body
  int status = 0;
  bool done = false;

  void answer(uint64_t, http::Answer answer) override {
    if (answer) return take(**answer);
    error = answer.error();
    done = true;
  }
  void answer_now(uint64_t, const http::Message& response) override { take(response); }
  void answer_plain(uint64_t, http::PlainResponse response) override {
    status = response.status;
    text = response.body;
    done = true;
  }

 private:
  void take(const http::Message& response) {
    text = response.ShortDebugString();
    done = true;
  }
};

class Services : public testing::Test {
 protected:
  Services() {
    readers.serve(member);
    router.admit(admission(member));
    add_cluster(router, context);
    add_maintenance(router, context);
    add_kv(router, context);
    add_lease(router, context);
    add_health(router, context);
    add_election(router, context);
    add_later(router);
  }

  template <class Request>
  std::shared_ptr<Caught> call(const std::string& path, const Request& request) {
    auto caught = std::make_shared<Caught>();
    const auto* found = router.find_path(path);
    EXPECT_NE(found, nullptr) << path;
    if (found == nullptr) return caught;
    found->unary->handler({.request = std::make_unique<Request>(request), .info = {}, .reply = {caught, 1}});
    readers.hooks().end(0);
    return caught;
  }
  // "" when it succeeded.
  template <class Request>
  Error refusal(const std::string& path, const Request& request) {
    const auto caught = call(path, request);
    EXPECT_TRUE(caught->done) << path;
    return caught->error.value_or(Error{Code::kOk, ""});
  }
  std::shared_ptr<Caught> get(const std::string& path, const std::string& query = "") {
    auto caught = std::make_shared<Caught>();
    router.find_path(path)->plain->handler({.method = "GET", .path = path, .query = query}, {caught, 1});
    return caught;
  }

  metrics::Registry registry;
  FakeMember member;
  Counters counters{registry};
  Readers readers{1};
  MemberHeader header{member};
  Context context{member, header, readers, counters, {}};
  http::Router router;
};

}  // namespace rpc
