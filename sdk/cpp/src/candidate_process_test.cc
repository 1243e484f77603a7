#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "conclave/conclave.h"
#include "test_candidate.h"
#include "test_server.h"
#include "test_wait.h"

namespace conclave {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using testing::standing;
using testing::Terms;
using testing::TestServer;
using testing::Told;
using testing::wait_for_stop;

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

}  // namespace
}  // namespace conclave
