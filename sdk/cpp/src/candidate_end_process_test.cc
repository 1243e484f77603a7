#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>

#include "conclave/conclave.h"
#include "test_candidate.h"
#include "test_server.h"
#include "test_wait.h"

namespace conclave {
namespace {

using namespace std::chrono_literals;
using testing::keys_become;
using testing::keys_below;
using testing::standing;
using testing::Terms;
using testing::TestServer;
using testing::Told;
using testing::wait_for_stop;
using Clock = std::chrono::steady_clock;

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

TEST(Candidate, MayBeDestroyedFromInsideLeadAsTheLastOfItsClient) {
  TestServer server;
  const Client other = server.client();
  auto own = std::make_shared<std::optional<Candidate>>();
  std::promise<void> go;
  std::promise<void> done;
  CandidateOptions options{.election = "e", .ttl = 1s};
  options.lead = [&, ready = go.get_future().share(), own](Leadership& mine, const std::stop_token&) {
    ready.wait();
    own->reset();
    EXPECT_FALSE(mine.proclaim("x", {.timeout = 1s}));  // nothing is left to ask
    done.set_value();
  };
  own->emplace(Candidate::open(server.client(), std::move(options)).or_throw());
  go.set_value();
  ASSERT_EQ(done.get_future().wait_for(10s), std::future_status::ready);
  EXPECT_TRUE(keys_become(other, "e/", 0));  // with the lease
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
