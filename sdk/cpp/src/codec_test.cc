#include "codec.h"

#include <gtest/gtest.h>

namespace conclave::inline v1::internal {
namespace {

const std::string kNul(1, '\0');

TEST(KeySpace, WritesRangesAsTheServerWantsThem) {
  const KeySpace keys("t/");
  EXPECT_EQ(keys.range("a", false, "")->key, "t/a");
  EXPECT_EQ(keys.range("a", false, "")->end, "");
  EXPECT_EQ(keys.range("a", true, "")->end, "t/b");
  EXPECT_EQ(keys.range("a", false, "c")->end, "t/c");
  EXPECT_EQ(keys.range("", true, "")->key, "t/");
  EXPECT_EQ(keys.range("", true, "")->end, "t0");
  EXPECT_EQ(keys.range("a", false, kNul)->end, "t0");  // "and all above" stays inside
  EXPECT_EQ(keys.strip("t/a"), "a");
  EXPECT_FALSE(keys.range("", false, ""));
  EXPECT_FALSE(keys.range("a", true, "b"));
  const KeySpace all;
  EXPECT_EQ(all.range("", true, "")->key, kNul);
  EXPECT_EQ(all.range("", true, "")->end, kNul);
  EXPECT_EQ(all.range("a\xff\xff", true, "")->end, "b");
  EXPECT_EQ(all.range("\xff", true, "")->end, kNul);
}

TEST(Codec, LeavesOutWhatIsUsual) {
  const KeySpace keys;
  EXPECT_EQ(encode_range({.key = "k"}, keys)->dump(), R"({"key":"aw=="})");
  EXPECT_EQ(encode_put("k", "", {.lease = LeaseId{7}}, keys)->dump(), R"({"key":"aw==","lease":"7"})");
  EXPECT_FALSE(encode_put("k", "v", {.ignore_value = true}, keys));
  EXPECT_FALSE(encode_put("k", "v", {.lease = LeaseId{1}, .ignore_lease = true}, keys));
}

TEST(Codec, WritesTransactions) {
  const KeySpace keys;
  Txn txn;
  txn.when(compare::create_revision("k") == 0, compare::value("k") != "v").then(op::put("k", "v"));
  EXPECT_EQ(encode_txn(txn, keys)->dump(),
            R"({"compare":[{"key":"aw==","target":"CREATE","result":"EQUAL","create_revision":"0"},)"
            R"({"key":"aw==","target":"VALUE","result":"NOT_EQUAL","value":"dg=="}],)"
            R"("success":[{"request_put":{"key":"aw==","value":"dg=="}}],"failure":[]})");
}

TEST(Codec, RefusesADeadlineInsideATransaction) {
  const KeySpace keys;
  const auto refused =
      encode_txn(Txn().then(op::range({.key = "k", .call = {.timeout = std::chrono::seconds(1)}})), keys);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  std::stop_source stop;
  EXPECT_FALSE(encode_txn(Txn().then(op::put("k", "v", {.call = {.stop = stop.get_token()}})), keys));
}

TEST(Codec, SaysWhenAnAnswerDoesNotFit) {
  const auto answer = Json::parse(R"({"header":{"revision":"5"},"succeeded":true,"responses":[{"response_moon":{}}]})");
  const auto result = decode_txn(*answer, KeySpace());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().outcome, Outcome::kMayHaveHappened);
}

}  // namespace
}  // namespace conclave::inline v1::internal
