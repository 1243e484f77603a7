// Who is refused, what it is told, and what it does about it.
#include <gmock/gmock.h>

#include "base/crc32c.h"
#include "peer/limits.h"
#include "peer/test_peer.h"

namespace peer {
namespace {

using testing::HasSubstr;

std::optional<Answer> told(Node& node, const Hello& hello) {
  Stranger stranger(node.url());
  stranger.say(encode(hello));
  auto answer = stranger.answer();
  if (answer && answer->verdict != Verdict::kAccepted) {
    EXPECT_TRUE(stranger.closed());
  }
  return answer;
}

TEST(Refusal, TellsEachItsReason) {
  Node a(1);
  a.know({{.id = 2, .urls = {"http://127.0.0.1:1"}}}, {3});
  const Hello good{.cluster = kCluster, .sender = 2, .addressee = 1};
  const auto verdict = [&](auto change) {
    Hello hello = good;
    change(hello);
    const auto answer = told(a, hello);
    if (!answer) return std::optional<Verdict>();
    EXPECT_EQ(answer->cluster, kCluster);
    EXPECT_EQ(answer->member, 1u);
    return std::optional(answer->verdict);
  };
  EXPECT_EQ(verdict([](Hello&) {}), Verdict::kAccepted);
  EXPECT_EQ(verdict([](Hello& h) { h.cluster = 7; }), Verdict::kWrongCluster);
  EXPECT_EQ(verdict([](Hello& h) { h.addressee = 7; }), Verdict::kWrongMember);
  EXPECT_EQ(verdict([](Hello& h) { h.sender = 7; }), Verdict::kUnknownSender);
  EXPECT_EQ(verdict([](Hello& h) { h.sender = 1; }), Verdict::kUnknownSender) << "itself";
  EXPECT_EQ(verdict([](Hello& h) { h.sender = 3; }), Verdict::kRemoved);
  EXPECT_EQ(verdict([](Hello& h) { h = {.kind = Hello::Kind::kAsk}; }), Verdict::kAccepted);
}

TEST(Refusal, NewerFormatIsToldSo) {
  Node a(1);
  Bytes bytes = encode(Hello{.cluster = kCluster, .sender = 2, .addressee = 1});
  bytes[6] = static_cast<char>(kFormat + 1);  // the oldest reader that can cope
  const uint32_t crc = crc32c(as_bytes(bytes).subspan(kPreambleBytes), crc32c(as_bytes(bytes).first(12)));
  std::memcpy(bytes.data() + 12, &crc, sizeof(crc));
  Stranger stranger(a.url());
  stranger.say(bytes);
  const auto answer = stranger.answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->verdict, Verdict::kTooNew);
  EXPECT_THAT(answer->text, HasSubstr("format 1"));
}

TEST(Refusal, UnknownSenderIsLetInOnceItIsKnown) {
  Node a(1);
  Node b(2);
  a.know({b.as_peer()});
  EXPECT_FALSE(a.network().send(2, Lane::kControl, "x"));
  b.know({a.as_peer()});
  EXPECT_TRUE(a.deliver(2, Lane::kControl, "x"));
  EXPECT_EQ(a.got().removed(), 0);
}

// A member that lags may not have heard of the one that leads now.
TEST(Refusal, AMemberThatIntroducesItselfIsLetInAndAnswered) {
  Node behind(1);
  Node known(2);
  behind.know({known.as_peer()});
  Node leads(3, [](Options& options) { options.own_urls = options.listener->urls(); });
  leads.know({behind.as_peer()});
  EXPECT_TRUE(leads.deliver(1, Lane::kAppend, "entries"));
  EXPECT_TRUE(eventually([&] { return behind.got().count(3, Lane::kAppend) == 1; }));
  EXPECT_TRUE(behind.deliver(3, Lane::kAppend, "thanks"));
  EXPECT_TRUE(eventually([&] { return leads.got().count(1, Lane::kAppend) == 1; }));
  behind.know({known.as_peer()});  // an older change than the one that added it
  EXPECT_TRUE(behind.deliver(3, Lane::kControl, "still there"));
  behind.know({known.as_peer()}, {3});
  EXPECT_TRUE(eventually([&] { return leads.got().removed() == 1; }));
  EXPECT_FALSE(behind.network().send(3, Lane::kControl, "gone"));
}

TEST(Refusal, OnlySoManyIntroduceThemselvesAtOnce) {
  Node a(1);
  const auto hello = [](uint64_t id) {
    return Hello{.cluster = kCluster, .sender = id, .addressee = 1, .urls = {"http://127.0.0.1:1"}};
  };
  std::vector<Stranger> crowd;
  for (uint64_t id = 10; id < 10 + kIntroducedMax; ++id) {
    crowd.emplace_back(a.url());
    crowd.back().say(encode(hello(id)));
    const auto answer = crowd.back().answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->verdict, Verdict::kAccepted);
  }
  const auto late = [&] {
    const auto answer = told(a, hello(99));
    return answer ? answer->verdict : Verdict::kTooNew;
  };
  EXPECT_EQ(late(), Verdict::kUnknownSender);
  crowd.pop_back();
  EXPECT_TRUE(eventually([&] { return late() == Verdict::kAccepted; })) << "one that went away makes room";
  EXPECT_EQ(told(a, hello(0))->verdict, Verdict::kUnknownSender);
}

// Its folder was lost, or is another one: it has forgotten what it promised.
TEST(Refusal, OneWithAnotherFolderIsNotLetIn) {
  Node a(1);
  Node b(2, [](Options& options) { options.folder_id = 6; });
  const Network::Peer before{.id = 2, .urls = {b.url()}, .folder_id = 5};
  a.know({before});
  const auto verdict = [&](uint64_t folder) {
    return told(a, {.cluster = kCluster, .sender = 2, .addressee = 1, .folder_id = folder})->verdict;
  };
  EXPECT_EQ(verdict(5), Verdict::kAccepted);
  EXPECT_EQ(verdict(0), Verdict::kAccepted) << "a version that does not tell";
  EXPECT_EQ(verdict(6), Verdict::kOtherFolder);
  b.know({a.as_peer()});
  EXPECT_TRUE(eventually([&] { return b.got().other_folder() > 0; }));
  for (const Lane lane : kAllLanes) EXPECT_FALSE(b.network().send(1, lane, "x"));
  EXPECT_EQ(b.got().other_folder(), 1);
}

// The membership that this member knows may have an old URL of a peer, which alone can tell it of the new one.
TEST(Refusal, APeerIsReachedWhereItSaysItIs) {
  Node a(1);
  Node b(2, [](Options& options) { options.own_urls = options.listener->urls(); });
  a.know({{.id = 2, .urls = {"http://127.0.0.1:1"}}});
  b.know({a.as_peer()});
  for (const Lane lane : kAllLanes) EXPECT_TRUE(a.deliver(2, lane, "x"));
  a.know({{.id = 2, .urls = {"http://127.0.0.1:2"}}});
  EXPECT_TRUE(a.deliver(2, Lane::kControl, "still"));
}

TEST(Refusal, RemovedMemberHearsItOnce) {
  Node a(1);
  Node b(2);
  Node c(3);
  a.know({b.as_peer(), c.as_peer()});
  b.know({a.as_peer(), c.as_peer()});
  c.know({a.as_peer(), b.as_peer()});
  for (const Lane lane : kAllLanes) {
    ASSERT_TRUE(c.deliver(1, lane, "x"));
    ASSERT_TRUE(c.deliver(2, lane, "x"));
  }
  a.know({b.as_peer()}, {3});
  b.know({a.as_peer()}, {3});
  EXPECT_TRUE(eventually([&] { return c.got().removed() > 0; }));
  EXPECT_TRUE(eventually([&] { return c.got().unreachable(1) >= 4 && c.got().unreachable(2) >= 4; }));
  EXPECT_EQ(c.got().removed(), 1);
  EXPECT_TRUE(a.deliver(2, Lane::kControl, "the others go on"));
}

TEST(Refusal, MembersOfTwoClustersDoNotMix) {
  Node a(1);
  Node stranger(2, [](Options& options) { options.cluster_id = 7; });
  Proxy proxy(stranger.url());
  stranger.know({a.as_peer()});
  a.know({{.id = 2, .urls = {proxy.url()}}});
  EXPECT_TRUE(eventually([&] { return proxy.connections() > 2 * Network::kLanes; })) << "it is tried again";
  for (const Lane lane : kAllLanes) {
    EXPECT_FALSE(a.network().send(2, lane, "x"));
    EXPECT_FALSE(stranger.network().send(1, lane, "x"));
  }
}

TEST(Refusal, AnotherMemberAtThePeersUrlIsNotTakenForIt) {
  Node a(1);
  Node b(2);
  b.know({a.as_peer()});
  Node other(3);
  other.know({a.as_peer()});
  Proxy proxy(other.url());
  a.know({{.id = 2, .urls = {proxy.url()}}});
  EXPECT_TRUE(eventually([&] { return proxy.connections() > 2 * Network::kLanes; }));
  EXPECT_FALSE(a.network().send(2, Lane::kControl, "x"));
  a.know({{.id = 2, .urls = {proxy.url(), b.url()}}});
  EXPECT_TRUE(a.deliver(2, Lane::kControl, "x"));
  EXPECT_TRUE(eventually([&] { return !b.got().frames(1, Lane::kControl).empty(); }));
  EXPECT_EQ(other.got().calls(), 0);
}

}  // namespace
}  // namespace peer
