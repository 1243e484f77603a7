#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "conclave/conclave.h"
#include "test_server.h"
#include "test_wait.h"

namespace conclave {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using testing::keys_become;
using testing::keys_below;
using testing::TestServer;
using Clock = std::chrono::steady_clock;

void wait_for_stop(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait(lock, stop, [] { return false; });
}

// The terms of one candidate, each until it is told to stop or to return.
class Terms {
 public:
  auto lead() {
    return [this](Leadership& mine, std::stop_token stop) {
      std::unique_lock lock(mutex_);
      tokens_.push_back(number(mine.token()));
      leading_ = true;
      wake_.notify_all();
      wake_.wait(lock, stop, [this] { return go_back_; });
      stopped_ = stop.stop_requested();
      go_back_ = false;
      leading_ = false;
      wake_.notify_all();
    };
  }
  // Until the term with this number (from 1) has begun; its token, or 0.
  std::int64_t wait_for(std::size_t term, std::chrono::milliseconds limit = 15s) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, limit, [&] { return tokens_.size() >= term; }) ? tokens_[term - 1] : 0;
  }
  void go_back() {
    std::scoped_lock lock(mutex_);
    go_back_ = true;
    wake_.notify_all();
  }
  std::size_t count() {
    std::scoped_lock lock(mutex_);
    return tokens_.size();
  }
  bool leading() {
    std::scoped_lock lock(mutex_);
    return leading_;
  }
  bool stopped() {
    std::scoped_lock lock(mutex_);
    return stopped_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::vector<std::int64_t> tokens_;
  bool leading_ = false;
  bool go_back_ = false;
  bool stopped_ = false;
};

// What on_state told, in order.
class Told {
 public:
  auto listener() {
    return [this](CandidateState state, const std::string& why) {
      std::scoped_lock lock(mutex_);
      states_.push_back(state);
      why_ = why;
      wake_.notify_all();
    };
  }
  bool wait_for(CandidateState state, std::chrono::milliseconds limit = 15s) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, limit, [&] { return !states_.empty() && states_.back() == state; });
  }
  std::vector<CandidateState> states() {
    std::scoped_lock lock(mutex_);
    return states_;
  }
  std::string why() {
    std::scoped_lock lock(mutex_);
    return why_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<CandidateState> states_;
  std::string why_;
};

CandidateOptions standing(Terms& terms, std::string value = "v") {
  return {.election = "e", .value = std::move(value), .ttl = 5s, .lead = terms.lead()};
}

LeaseId lease_of_leader(const Client& client) {
  return client.range({.key = "e/", .prefix = true, .order = SortOrder::kAscend, .sort_by = SortTarget::kCreate})
      .or_throw()
      .kvs.at(0)
      .lease;
}

TEST(Candidate, LeadsInTurnAndIsSeen) {
  TestServer server;
  const Client client = server.client();
  const auto view = LeaderView::open(client, {.election = "e"}).or_throw();
  Terms one;
  Terms two;
  auto first = std::make_optional(Candidate::open(client, standing(one, "one")).or_throw());
  first->wait_ready({.timeout = 5s}).or_throw();
  const auto token = one.wait_for(1);
  ASSERT_GT(token, 0);
  EXPECT_EQ(first->state(), CandidateState::kLeading);
  const auto second = Candidate::open(client, standing(two, "two")).or_throw();
  second.wait_ready({.timeout = 5s}).or_throw();
  EXPECT_EQ(second.state(), CandidateState::kWaiting);
  EXPECT_TRUE(eventually([&] { return view.leader() && view.leader()->value == "one"; }));
  EXPECT_EQ(number(view.leader()->token), token);
  EXPECT_EQ(two.count(), 0u);
  first.reset();
  EXPECT_FALSE(one.leading());  // the destructor waited for it
  EXPECT_GT(two.wait_for(1), token);
  EXPECT_TRUE(eventually([&] { return view.leader() && view.leader()->value == "two"; }));
  EXPECT_EQ(one.count(), 1u);
}

TEST(Candidate, TermsOfManyNeverOverlap) {
  TestServer server;
  constexpr int kCandidates = 4;
  std::atomic<int> leading{0};
  std::atomic<int> terms{0};
  std::atomic<std::int64_t> last{0};
  std::vector<Client> clients;
  std::vector<Candidate> candidates;
  for (int i = 0; i < kCandidates; ++i) {
    clients.push_back(server.client());
    candidates.push_back(Candidate::open(clients.back(), {.election = "e",
                                                          .lead =
                                                              [&](Leadership& mine, const std::stop_token&) {
                                                                EXPECT_EQ(leading.fetch_add(1), 0);
                                                                EXPECT_LT(last.exchange(number(mine.token())),
                                                                          number(mine.token()));
                                                                EXPECT_TRUE(mine.held());
                                                                ++terms;
                                                                leading.fetch_sub(1);
                                                              }})
                             .or_throw());
  }
  EXPECT_TRUE(eventually([&] { return terms >= 20; }, 60s));
}

TEST(Candidate, ReturningResignsAndStandsAgain) {
  TestServer server;
  const Client client = server.client();
  Terms one;
  Terms two;
  Told told;
  auto options = standing(one);
  options.on_state = told.listener();
  const auto first = Candidate::open(client, std::move(options)).or_throw();
  ASSERT_GT(one.wait_for(1), 0);
  const auto second = Candidate::open(client, standing(two)).or_throw();
  second.wait_ready({.timeout = 5s}).or_throw();
  one.go_back();
  ASSERT_GT(two.wait_for(1), one.wait_for(1));
  ASSERT_TRUE(told.wait_for(CandidateState::kWaiting));
  EXPECT_EQ(one.count(), 1u);
  two.go_back();
  EXPECT_GT(one.wait_for(2), two.wait_for(1));
  ASSERT_TRUE(told.wait_for(CandidateState::kLeading));
  using enum CandidateState;
  EXPECT_EQ(told.states(), (std::vector{kWaiting, kLeading, kJoining, kWaiting, kLeading}));
}

TEST(Candidate, ComesBackAfterItsLeaseWasRevoked) {
  TestServer server;
  const Client client = server.client();
  Terms terms;
  auto options = standing(terms);
  options.ttl = 60s;  // no keepalive within this test
  const auto candidate = Candidate::open(client, std::move(options)).or_throw();
  const auto token = terms.wait_for(1);
  ASSERT_GT(token, 0);
  const LeaseId lease = lease_of_leader(client);
  testing::revoke(client, lease);
  EXPECT_GT(terms.wait_for(2), token);
  EXPECT_TRUE(terms.stopped());
  EXPECT_NE(lease_of_leader(client), lease);
  EXPECT_TRUE(eventually([&] { return candidate.state() == CandidateState::kLeading; }));
}

TEST(Candidate, ComesBackAfterItsKeyWasRemoved) {
  TestServer server;
  const Client client = server.client();
  Terms terms;
  const auto candidate = Candidate::open(client, standing(terms)).or_throw();
  const auto token = terms.wait_for(1);
  ASSERT_GT(token, 0);
  (void)client.del("e/", {.prefix = true}).or_throw();
  EXPECT_GT(terms.wait_for(2), token);
  EXPECT_TRUE(terms.stopped());
}

TEST(Candidate, KeepsItsTermThroughAShortRestartOfTheServer) {
  TestServer server;
  const Client client = server.client();
  Terms terms;
  auto options = standing(terms);
  options.ttl = 30s;
  const auto candidate = Candidate::open(client, std::move(options)).or_throw();
  ASSERT_GT(terms.wait_for(1), 0);
  server.kill();
  server.start();
  const auto view = LeaderView::open(client, {.election = "e"}).or_throw();
  view.wait_ready({.timeout = 10s}).or_throw();
  EXPECT_TRUE(view.leader().has_value());
  EXPECT_EQ(candidate.state(), CandidateState::kLeading);
  EXPECT_EQ(terms.count(), 1u);
}

TEST(Candidate, ComesBackAfterALongEndOfTheServer) {
  TestServer server;
  const Client client = server.client();
  Terms terms;
  Told told;
  auto options = standing(terms);
  options.ttl = 1s;
  options.on_state = told.listener();
  const auto candidate = Candidate::open(client, std::move(options)).or_throw();
  const auto token = terms.wait_for(1);
  ASSERT_GT(token, 0);
  server.kill();
  ASSERT_TRUE(told.wait_for(CandidateState::kJoining));
  EXPECT_TRUE(terms.stopped());
  EXPECT_NE(candidate.state(), CandidateState::kLeading);
  server.start();
  EXPECT_GT(terms.wait_for(2), token);
}

TEST(Candidate, LeadsByItselfOnceTheClusterIsThere) {
  TestServer server;
  server.kill();
  const Client client = server.client();
  Terms terms;
  const auto candidate = Candidate::open(client, standing(terms)).or_throw();
  const auto early = candidate.wait_ready({.timeout = 300ms});
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(candidate.state(), CandidateState::kJoining);
  server.start();
  EXPECT_GT(terms.wait_for(1), 0);
}

TEST(Candidate, GoesOnAfterAnException) {
  TestServer server;
  std::mutex mutex;
  std::string logged;
  auto where = server.options();
  where.log = [&](const LogLine& line) {
    std::scoped_lock lock(mutex);
    logged += line.text + "\n";
  };
  const Client client = Client::open(where).or_throw();
  std::atomic<int> terms{0};
  const auto candidate = Candidate::open(client, {.election = "e",
                                                  .lead =
                                                      [&](Leadership&, const std::stop_token& stop) {
                                                        if (++terms == 1) throw std::runtime_error("no way");
                                                        wait_for_stop(stop);
                                                      }})
                             .or_throw();
  EXPECT_TRUE(eventually([&] { return terms == 2; }));
  EXPECT_TRUE(eventually([&] {
    std::scoped_lock lock(mutex);
    return logged.find("no way") != std::string::npos;
  }));
}

TEST(Candidate, ResignsAndProclaimsFromInside) {
  TestServer server;
  const Client client = server.client();
  std::promise<std::string> seen;
  std::atomic<int> terms{0};
  const auto candidate = Candidate::open(client, {.election = "e",
                                                  .value = "first",
                                                  .lead =
                                                      [&](Leadership& mine, const std::stop_token& stop) {
                                                        if (++terms > 1) return wait_for_stop(stop);
                                                        mine.proclaim("second").or_throw();
                                                        seen.set_value(client.get(mine.key()).or_throw()->value);
                                                        mine.resign().or_throw();
                                                      }})
                             .or_throw();
  EXPECT_EQ(seen.get_future().get(), "second");
  ASSERT_TRUE(eventually([&] { return terms == 2; }));
  EXPECT_EQ(client.range({.key = "e/", .prefix = true}).or_throw().kvs.at(0).value, "first");
}

TEST(Candidate, ItsDestructorStopsAndWaitsForLeadAndResigns) {
  TestServer server;
  const Client client = server.client();
  std::promise<void> begun;
  std::promise<void> go;
  std::atomic<bool> returned{false};
  std::atomic<bool> held{false};
  auto candidate = std::make_optional(Candidate::open(client, {.election = "e",
                                                               .ttl = 60s,
                                                               .lead =
                                                                   [&](Leadership& mine, const std::stop_token& stop) {
                                                                     begun.set_value();
                                                                     wait_for_stop(stop);
                                                                     go.get_future().wait();
                                                                     held = mine.held();
                                                                     returned = true;
                                                                   }})
                                          .or_throw());
  ASSERT_EQ(begun.get_future().wait_for(10s), std::future_status::ready);
  auto gone = std::async(std::launch::async, [&] { candidate.reset(); });
  EXPECT_EQ(gone.wait_for(100ms), std::future_status::timeout);
  EXPECT_EQ(keys_below(client, "e/"), 1);
  go.set_value();
  ASSERT_EQ(gone.wait_for(10s), std::future_status::ready);
  EXPECT_TRUE(returned);
  EXPECT_TRUE(held);  // it was leader until it returned
  EXPECT_TRUE(keys_become(client, "e/", 0));
}

TEST(Candidate, IsDestroyedWhileItWaitsInTheQueue) {
  TestServer server;
  const Client client = server.client();
  Terms one;
  Terms two;
  const auto first = Candidate::open(client, standing(one)).or_throw();
  ASSERT_GT(one.wait_for(1), 0);
  {
    const auto second = Candidate::open(client, standing(two)).or_throw();
    second.wait_ready({.timeout = 5s}).or_throw();
    EXPECT_EQ(keys_below(client, "e/"), 2);
  }
  EXPECT_TRUE(keys_become(client, "e/", 1));
  EXPECT_EQ(two.count(), 0u);
  EXPECT_TRUE(one.leading());
}

TEST(Candidate, MayBeDestroyedFromInsideLead) {
  TestServer server;
  const Client client = server.client();
  auto own = std::make_shared<std::optional<Candidate>>();
  std::promise<void> go;
  std::promise<bool> done;
  own->emplace(
      Candidate::open(client, {.election = "e",
                               .ttl = 60s,
                               .lead =
                                   [&, ready = go.get_future().share(), own](Leadership&, const std::stop_token& stop) {
                                     ready.wait();
                                     own->reset();
                                     done.set_value(stop.stop_requested());
                                   }})
          .or_throw());
  go.set_value();
  auto stopped = done.get_future();
  ASSERT_EQ(stopped.wait_for(10s), std::future_status::ready);
  EXPECT_TRUE(stopped.get());
  EXPECT_TRUE(keys_become(client, "e/", 0));
}

TEST(Candidate, MayBeDestroyedFromInsideItsCallback) {
  TestServer server;
  const Client client = server.client();
  Terms terms;
  auto own = std::make_shared<std::optional<Candidate>>();
  std::promise<void> go;
  std::promise<void> done;
  auto options = standing(terms);
  options.on_state = [&, ready = go.get_future().share(), own](CandidateState state, const std::string&) {
    if (state != CandidateState::kLeading) return;
    ready.wait();
    own->reset();
    done.set_value();
  };
  own->emplace(Candidate::open(client, std::move(options)).or_throw());
  go.set_value();
  EXPECT_EQ(done.get_future().wait_for(10s), std::future_status::ready);
  EXPECT_TRUE(keys_become(client, "e/", 0));
  EXPECT_FALSE(terms.leading());
}

TEST(Candidate, ClosesAndTells) {
  TestServer server;
  const Client client = server.client();
  Terms terms;
  Told told;
  auto options = standing(terms);
  options.on_state = told.listener();
  auto candidate = Candidate::open(client, std::move(options)).or_throw();
  ASSERT_GT(terms.wait_for(1), 0);
  candidate.close().or_throw();
  EXPECT_EQ(keys_below(client, "e/"), 0);
  EXPECT_FALSE(terms.leading());
  EXPECT_EQ(candidate.state(), CandidateState::kClosed);
  EXPECT_EQ(candidate.wait_ready().error().code, Code::kFailedPrecondition);
  EXPECT_TRUE(told.wait_for(CandidateState::kClosed));
}

TEST(Candidate, DoesNotCloseInTimeWhileLeadRuns) {
  TestServer server;
  const Client client = server.client();
  std::promise<void> go;
  std::promise<Error> inside;
  auto own = std::make_shared<std::optional<Candidate>>();
  std::promise<void> open;
  own->emplace(Candidate::open(client, {.election = "e",
                                        .lead =
                                            [&, there = open.get_future().share(), ready = go.get_future().share()](
                                                Leadership&, const std::stop_token&) {
                                              there.wait();
                                              inside.set_value((*own)->close().error());
                                              ready.wait();
                                            }})
                   .or_throw());
  open.set_value();
  EXPECT_EQ(inside.get_future().get().code, Code::kFailedPrecondition);
  const auto late = (*own)->close({.timeout = 100ms});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(late.error().outcome, Outcome::kMayHaveHappened);
  go.set_value();
  EXPECT_TRUE(keys_become(client, "e/", 0));
}

TEST(Candidate, EndsWithItsClientWhichWaitsForLead) {
  TestServer server;
  const Client other = server.client();
  Client client = server.client();
  Terms terms;
  auto options = standing(terms);
  options.ttl = 60s;
  const auto candidate = Candidate::open(client, std::move(options)).or_throw();
  ASSERT_GT(terms.wait_for(1), 0);
  client.close({.timeout = 10s}).or_throw();
  EXPECT_FALSE(terms.leading());
  EXPECT_EQ(keys_below(other, "e/"), 0);
  EXPECT_EQ(candidate.state(), CandidateState::kClosed);
  EXPECT_EQ(Candidate::open(client, standing(terms)).error().code, Code::kFailedPrecondition);
}

TEST(Candidate, IsEndedQuicklyWhenNobodyAnswers) {
  TestServer server;
  const Client client = server.client();
  Terms one;
  Terms two;
  auto leading = std::make_optional(Candidate::open(client, standing(one)).or_throw());
  ASSERT_GT(one.wait_for(1), 0);
  auto waiting = std::make_optional(Candidate::open(client, standing(two)).or_throw());
  waiting->wait_ready({.timeout = 5s}).or_throw();
  server.pause();
  const auto start = Clock::now();
  waiting.reset();
  leading.reset();
  EXPECT_LT(Clock::now() - start, 1s);  // 200 ms each, and a busy machine
  server.resume();
  EXPECT_TRUE(keys_become(client, "e/", 0));
}

TEST(Candidate, RefusesBadArgumentsByName) {
  const Client client = Client::open({.endpoints = {"http://127.0.0.1:1"}}).or_throw();
  const auto refused = [&](auto change, const std::string& name) {
    Terms terms;
    auto options = standing(terms);
    change(options);
    const auto opened = Candidate::open(client, std::move(options));
    ASSERT_FALSE(opened) << name;
    EXPECT_EQ(opened.error().code, Code::kInvalidArgument);
    EXPECT_TRUE(opened.error().message.starts_with(name)) << opened.error().message;
  };
  refused([](auto& o) { o.election = ""; }, "election");
  refused([](auto& o) { o.lead = nullptr; }, "lead");
  refused([](auto& o) { o.ttl = 0s; }, "ttl");
}

}  // namespace
}  // namespace conclave
