// Every option of RangeRequest against the answers of etcd (server/etcdserver/txn/range.go, and the recorded cases of
// kv-range). Both sides that share the code are asked: a Reader and a Writer.
#include "mvcc/range.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "mvcc/member_test.h"

namespace mvcc {
namespace {

using etcdserverpb::RangeRequest;
using etcdserverpb::RangeResponse;

// "a2:v1" is key a at mod revision 2 with value v1; then "+" where there is more, and "/count".
std::string show(const RangeResponse& response) {
  std::string text;
  for (const auto& kv : response.kvs()) {
    text += kv.key() + std::to_string(kv.mod_revision()) + (kv.value().empty() ? "" : ":" + kv.value()) + " ";
  }
  return text + (response.more() ? "+" : "") + "/" + std::to_string(response.count());
}

struct Case {
  const char* request;
  const char* answer;
};

class RangeOptions : public testing::TestWithParam<std::tuple<Case, bool>> {
 protected:
  // Revision: 2 a=5, 3 b=4, 4 c=3, 5 d=2, 6 e=1, 7 b=9, 8 erase d, 9 d=0, 10 c=7 and c again 8 and f=6 in one.
  RangeOptions() : member_(std::get<1>(GetParam()) ? 1 << 20 : 0) {
    member_.put("a", "5");
    member_.put("b", "4");
    member_.put("c", "3");
    member_.put("d", "2");
    member_.put("e", "1");
    member_.put("b", "9");
    member_.erase("d");
    member_.put("d", "0");
    member_.write([](Writer& writer) {
      EXPECT_TRUE(writer.put("c", "7", 0, false));
      EXPECT_TRUE(writer.put("c", "8", 77, false));
      EXPECT_TRUE(writer.put("f", "6", 0, false));
    });
    EXPECT_EQ(member_.mvcc().published().revision, 10);
  }
  Member member_;
};

TEST_P(RangeOptions, AnswersAsEtcd) {
  const Case& test = std::get<0>(GetParam());
  RangeRequest request;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(test.request, &request)) << test.request;

  RangeResponse response;
  const Status status = member_.mvcc().reader()->range(request, &response);
  EXPECT_EQ(status ? show(response) : status.error().message, test.answer) << test.request;

  RangeResponse staged;
  member_.batch([&](Writer& writer) {
    writer.begin_revision();
    const Status in_txn = writer.range(request, &staged);
    EXPECT_EQ(in_txn ? show(staged) : in_txn.error().message, test.answer) << test.request;
    writer.end_revision();
  });
}

constexpr Case kCases[] = {
    // Forms of range_end.
    {R"(key: "a")", "a2:5 /1"},
    {R"(key: "nope")", "/0"},
    {R"(key: "a" range_end: "c")", "a2:5 b7:9 /2"},
    {R"(key: "aa" range_end: "bb")", "b7:9 /1"},
    {R"(key: "e" range_end: "\000")", "e6:1 f10:6 /2"},
    {R"(key: "\000" range_end: "\000")", "a2:5 b7:9 c10:8 d9:0 e6:1 f10:6 /6"},
    {R"(key: "c" range_end: "c")", "/0"},
    {R"(key: "d" range_end: "b")", "/0"},
    // Revisions.
    {R"(key: "a" range_end: "z" revision: 4)", "a2:5 b3:4 c4:3 /3"},
    {R"(key: "a" range_end: "z" revision: 8)", "a2:5 b7:9 c4:3 e6:1 /4"},
    {R"(key: "d" revision: 8)", "/0"},
    {R"(key: "d" revision: 7)", "d5:2 /1"},
    {R"(key: "c" revision: 10)", "c10:8 /1"},
    {R"(key: "a" revision: 1)", "/0"},
    {R"(key: "a" revision: -5)", "a2:5 /1"},
    {R"(key: "a" revision: 11)", "etcdserver: mvcc: required revision is a future revision"},
    {R"(key: "a" revision: 9223372036854775807)", "etcdserver: mvcc: required revision is a future revision"},
    // Limit, more, count.
    {R"(key: "a" range_end: "z" limit: 2)", "a2:5 b7:9 +/6"},
    {R"(key: "a" range_end: "z" limit: 5)", "a2:5 b7:9 c10:8 d9:0 e6:1 +/6"},
    {R"(key: "a" range_end: "z" limit: 6)", "a2:5 b7:9 c10:8 d9:0 e6:1 f10:6 /6"},
    {R"(key: "a" range_end: "z" limit: 9223372036854775807)", "a2:5 b7:9 c10:8 d9:0 e6:1 f10:6 /6"},
    {R"(key: "a" range_end: "d" limit: -1)", "a2:5 b7:9 c10:8 /3"},
    {R"(key: "a" range_end: "z" count_only: true)", "/6"},
    {R"(key: "a" range_end: "z" count_only: true limit: 2)", "/6"},
    {R"(key: "a" range_end: "z" count_only: true min_mod_revision: 9)", "/6"},
    {R"(key: "a" range_end: "z" count_only: true keys_only: true revision: 7)", "/5"},
    {R"(key: "a" count_only: true)", "/1"},
    {R"(key: "nope" count_only: true)", "/0"},
    // Keys only.
    {R"(key: "a" range_end: "z" keys_only: true)", "a2 b7 c10 d9 e6 f10 /6"},
    {R"(key: "a" range_end: "z" keys_only: true limit: 2)", "a2 b7 +/6"},
    {R"(key: "a" range_end: "z" keys_only: true revision: 6)", "a2 b3 c4 d5 e6 /5"},
    {R"(key: "b" keys_only: true)", "b7 /1"},
    // Order, cut after it.
    {R"(key: "a" range_end: "z" sort_order: ASCEND limit: 2)", "a2:5 b7:9 +/6"},
    {R"(key: "a" range_end: "z" sort_order: DESCEND)", "f10:6 e6:1 d9:0 c10:8 b7:9 a2:5 /6"},
    {R"(key: "a" range_end: "z" sort_order: DESCEND limit: 2)", "f10:6 e6:1 +/6"},
    {R"(key: "a" range_end: "z" sort_order: ASCEND sort_target: VERSION)", "a2:5 d9:0 e6:1 f10:6 b7:9 c10:8 /6"},
    {R"(key: "a" range_end: "z" sort_order: DESCEND sort_target: VERSION limit: 3)", "c10:8 b7:9 a2:5 +/6"},
    {R"(key: "a" range_end: "z" sort_order: ASCEND sort_target: CREATE)", "a2:5 b7:9 c10:8 e6:1 d9:0 f10:6 /6"},
    {R"(key: "a" range_end: "z" sort_order: DESCEND sort_target: CREATE limit: 1)", "f10:6 +/6"},
    {R"(key: "a" range_end: "z" sort_order: ASCEND sort_target: MOD limit: 4)", "a2:5 e6:1 b7:9 d9:0 +/6"},
    {R"(key: "a" range_end: "z" sort_order: DESCEND sort_target: MOD limit: 1)", "c10:8 +/6"},
    {R"(key: "a" range_end: "z" sort_order: ASCEND sort_target: VALUE limit: 3)", "d9:0 e6:1 a2:5 +/6"},
    {R"(key: "a" range_end: "z" sort_order: DESCEND sort_target: VALUE limit: 2)", "b7:9 c10:8 +/6"},
    {R"(key: "a" range_end: "z" sort_order: ASCEND sort_target: VALUE keys_only: true)", "d9 e6 a2 f10 c10 b7 /6"},
    {R"(key: "a" range_end: "z" sort_order: ASCEND sort_target: CREATE revision: 8 keys_only: true)", "a2 b7 c4 e6 /4"},
    {R"(key: "a" range_end: "z" sort_order: DESCEND sort_target: VERSION revision: 9 limit: 1)", "b7:9 +/5"},
    // No order with a target: ascending, of the first limit + 1 keys (quirk 17).
    {R"(key: "a" range_end: "z" sort_target: VALUE)", "d9:0 e6:1 a2:5 f10:6 c10:8 b7:9 /6"},
    {R"(key: "a" range_end: "z" sort_target: VALUE limit: 2)", "a2:5 c10:8 +/6"},
    {R"(key: "a" range_end: "z" sort_target: MOD limit: 3)", "a2:5 b7:9 d9:0 +/6"},
    {R"(key: "a" range_end: "z" sort_target: VERSION limit: 1)", "a2:5 +/6"},
    {R"(key: "a" range_end: "z" sort_target: KEY limit: 1)", "a2:5 +/6"},
    // Filters: `count` does not see them, `more` does, and the limit cuts after them (quirk 18).
    {R"(key: "a" range_end: "z" min_mod_revision: 7)", "b7:9 c10:8 d9:0 f10:6 /6"},
    {R"(key: "a" range_end: "z" max_mod_revision: 7)", "a2:5 b7:9 e6:1 /6"},
    {R"(key: "a" range_end: "z" min_mod_revision: 6 max_mod_revision: 9)", "b7:9 d9:0 e6:1 /6"},
    {R"(key: "a" range_end: "z" min_mod_revision: 100)", "/6"},
    {R"(key: "a" range_end: "z" min_create_revision: 6)", "d9:0 e6:1 f10:6 /6"},
    {R"(key: "a" range_end: "z" max_create_revision: 3)", "a2:5 b7:9 /6"},
    {R"(key: "a" range_end: "z" min_create_revision: 3 max_create_revision: 4)", "b7:9 c10:8 /6"},
    {R"(key: "a" range_end: "z" min_mod_revision: 7 limit: 2)", "b7:9 c10:8 +/6"},
    {R"(key: "a" range_end: "z" min_mod_revision: 7 limit: 4)", "b7:9 c10:8 d9:0 f10:6 /6"},
    {R"(key: "a" range_end: "z" min_mod_revision: 7 limit: 1 sort_target: VALUE)", "d9:0 +/6"},
    {R"(key: "a" range_end: "z" max_create_revision: 3 revision: 5 keys_only: true)", "a2 b3 /4"},
    {R"(key: "a" range_end: "z" max_mod_revision: -1)", "/6"},
    // Numbers that are no value of the enum.
    {R"(key: "a" sort_order: 7)", "etcdserver: invalid sort option"},
    {R"(key: "a" sort_target: 9)", "etcdserver: invalid sort option"},
};

INSTANTIATE_TEST_SUITE_P(Cached, RangeOptions, testing::Combine(testing::ValuesIn(kCases), testing::Bool()),
                         [](const auto& info) { return std::to_string(info.index); });

TEST(Range, KeysOnlyKeepsTheRestOfTheHeadAndReadsNoValue) {
  Member member(0);
  member.put("a", "x", 9);
  member.put("a", "y", 7);
  member.put("b", "z");
  RangeRequest request;
  request.set_key("a");
  request.set_range_end("z");
  request.set_keys_only(true);
  RangeResponse response;
  member.fake().rows_read = member.fake().values_read = 0;
  ASSERT_TRUE(member.mvcc().reader()->range(request, &response));
  EXPECT_EQ(member.fake().rows_read, 0);
  ASSERT_EQ(response.kvs_size(), 2);
  EXPECT_EQ(response.kvs(0).lease(), 7);
  EXPECT_EQ(response.kvs(0).version(), 2);
  EXPECT_EQ(response.kvs(0).create_revision(), 2);

  request.set_revision(2);
  response.Clear();
  ASSERT_TRUE(member.mvcc().reader()->range(request, &response));
  ASSERT_EQ(response.kvs_size(), 1);
  EXPECT_EQ(response.kvs(0).lease(), 9);
  EXPECT_EQ(response.kvs(0).version(), 1);
  EXPECT_EQ(member.fake().rows_read, 1);
  EXPECT_EQ(member.fake().values_read, 0);

  request.set_keys_only(false);
  request.set_count_only(true);
  ASSERT_TRUE(member.mvcc().reader()->range(request, &response));
  EXPECT_EQ(member.fake().rows_read, 1);
}

TEST(Range, IsOneStateAcrossSlicesOfTheIndex) {
  Member member(1 << 20);
  constexpr int kKeys = 3 * kSliceKeysMax + 17;
  member.write([&](Writer& writer) {
    for (int i = 0; i < kKeys; ++i) EXPECT_TRUE(writer.put("k" + std::to_string(100'000 + i), "v", 0, false));
  });
  RangeRequest request;
  request.set_key("k");
  request.set_range_end("l");
  RangeResponse response;
  ASSERT_TRUE(member.mvcc().reader()->range(request, &response));
  EXPECT_EQ(response.count(), kKeys);
  ASSERT_EQ(response.kvs_size(), kKeys);
  for (int i = 0; i < kKeys; ++i) ASSERT_EQ(response.kvs(i).key(), "k" + std::to_string(100'000 + i));
  request.set_limit(kSliceKeysMax);
  ASSERT_TRUE(member.mvcc().reader()->range(request, &response));
  EXPECT_EQ(response.kvs_size(), kSliceKeysMax);
  EXPECT_EQ(response.count(), kKeys);
  EXPECT_TRUE(response.more());
}

}  // namespace
}  // namespace mvcc
