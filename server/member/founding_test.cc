#include "member/founding.h"

#include <gtest/gtest.h>

namespace member {
namespace {

Options options_of(const std::string& name) {
  Options options;
  options.name = name;
  options.initial_cluster = {{"a", {"http://10.0.0.1:2380"}},
                             {"b", {"http://10.0.0.2:2380", "http://10.0.1.2:2380"}},
                             {"c", {"http://10.0.0.3:2380"}}};
  for (const auto& member : options.initial_cluster) {
    if (member.name == name) options.peer_urls = member.peer_urls;
  }
  return options;
}

TEST(Founding, MembersThatStartApartAgree) {
  const auto a = found(options_of("a"), {});
  const auto b = found(options_of("b"), {});
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->identity.cluster_id, b->identity.cluster_id);
  EXPECT_NE(a->identity.member_id, b->identity.member_id);
  EXPECT_EQ(a->members, b->members);
  EXPECT_EQ(a->members.size(), 3u);
  EXPECT_FALSE(a->joins);

  Options reordered = options_of("a");
  std::swap(reordered.initial_cluster[0], reordered.initial_cluster[2]);
  std::swap(reordered.initial_cluster[1].peer_urls[0], reordered.initial_cluster[1].peer_urls[1]);
  EXPECT_EQ(found(reordered, {})->identity, a->identity);

  Options other_token = options_of("a");
  other_token.cluster_token = "other";
  EXPECT_NE(found(other_token, {})->identity.cluster_id, a->identity.cluster_id);
  EXPECT_NE(found(other_token, {})->identity.member_id, a->identity.member_id);
}

// etcd 3.7.1 gives these to `--initial-cluster default=http://localhost:2380`.
TEST(Founding, IdsAreEtcds) {
  Options options;
  options.peer_urls = {"http://localhost:2380"};
  EXPECT_EQ(identity_of(options).member_id, 0x8e9e05c52164694d);
  EXPECT_EQ(identity_of(options).cluster_id, 0xcdf818194e3a8c32);
}

TEST(Founding, AMemberThatIsNotInItsClusterIsRefused) {
  Options options = options_of("a");
  options.name = "x";
  EXPECT_EQ(found(options, {}).error().code, Code::kInvalidArgument);
}

TEST(Founding, OneThatJoinsAsksTheOthersWhoItIs) {
  Options options = options_of("c");
  options.join_existing = true;
  const std::vector<apply::Member> members = {
      {.id = 11, .name = "a", .peer_urls = {"http://10.0.0.1:2380"}, .client_urls = {"http://c"}},
      {.id = 33, .name = "", .peer_urls = {"http://10.0.0.3:2380"}, .client_urls = {}, .is_learner = true}};
  std::vector<std::string> asked;
  const auto joined = found(options, [&](const std::vector<std::string>& urls) -> Result<Bytes> {
    asked = urls;
    return describe(77, members);
  });
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_EQ(asked, (std::vector<std::string>{"http://10.0.0.1:2380", "http://10.0.0.2:2380", "http://10.0.1.2:2380"}));
  EXPECT_EQ(joined->identity, (wal::Identity{.cluster_id = 77, .member_id = 33}));
  EXPECT_EQ(joined->members, members);
  EXPECT_TRUE(joined->joins);
}

TEST(Founding, OneThatWasNotAddedOrFindsNobodyIsTold) {
  Options options = options_of("c");
  options.join_existing = true;
  const auto answer = [](Result<Bytes> bytes) { return [bytes](const std::vector<std::string>&) { return bytes; }; };
  const auto stranger =
      found(options, answer(describe(77, {{.id = 11, .name = "a", .peer_urls = {"http://z"}, .client_urls = {}}})));
  EXPECT_EQ(stranger.error().code, Code::kFailedPrecondition);
  EXPECT_NE(stranger.error().message.find("member add"), std::string::npos);
  EXPECT_EQ(found(options, answer(Bytes("nonsense"))).error().code, Code::kUnavailable);
  EXPECT_EQ(found(options, answer(::fail(Code::kUnavailable, "nobody"))).error().message, "nobody");
  options.initial_cluster = {{"c", options.peer_urls}};
  EXPECT_EQ(found(options, answer(Bytes())).error().code, Code::kInvalidArgument) << "nobody to ask";
}

}  // namespace
}  // namespace member
