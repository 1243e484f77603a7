#include "http/json_write.h"

#include <gtest/gtest.h>

#include <limits>

#include "api/rpc.pb.h"
#include "http/json_text.h"

namespace http::json {
namespace {

std::string written(const google::protobuf::Message& message) {
  std::string out;
  append(out, message);
  return out;
}

TEST(JsonWrite, LeavesDefaultsOutAndKeepsEmptyMessages) {
  etcdserverpb::PutResponse response;
  EXPECT_EQ(written(response), "{}");
  response.mutable_header();
  EXPECT_EQ(written(response), R"({"header":{}})");
}

TEST(JsonWrite, IntegersOf64BitsAreStringsAndNamesAreSnakeCase) {
  etcdserverpb::PutResponse response;
  response.mutable_header()->set_cluster_id(std::numeric_limits<uint64_t>::max());
  response.mutable_header()->set_revision(std::numeric_limits<int64_t>::min());
  auto* kv = response.mutable_prev_kv();
  kv->set_key("a");
  kv->set_create_revision(5);
  kv->set_value(std::string("\0\xff", 2));
  EXPECT_EQ(written(response), R"({"header":{"cluster_id":"18446744073709551615","revision":"-9223372036854775808"},)"
                               R"("prev_kv":{"key":"YQ==","create_revision":"5","value":"AP8="}})");
}

TEST(JsonWrite, EnumsByNameOrElseByNumber) {
  etcdserverpb::WatchResponse response;
  response.add_events()->mutable_kv()->set_key("k");
  response.mutable_events(0)->set_type(mvccpb::Event::DELETE);
  EXPECT_EQ(written(response), R"({"events":[{"type":"DELETE","kv":{"key":"aw=="}}]})");
  etcdserverpb::AlarmMember alarm;
  alarm.set_alarm(static_cast<etcdserverpb::AlarmType>(77));
  EXPECT_EQ(written(alarm), R"({"alarm":77})");
}

TEST(JsonWrite, FieldsComeInDeclaredOrder) {
  etcdserverpb::WatchResponse response;
  response.add_events();
  response.add_events()->set_type(mvccpb::Event::DELETE);
  response.set_cancel_reason("gone");
  response.set_created(true);
  response.set_watch_id(-1);
  response.mutable_header();
  EXPECT_EQ(written(response),
            R"({"header":{},"watch_id":"-1","created":true,"cancel_reason":"gone","events":[{},{"type":"DELETE"}]})");
}

TEST(JsonWrite, RepeatedScalars) {
  etcdserverpb::LeaseTimeToLiveResponse lease;
  lease.add_keys("a");
  lease.add_keys("");
  lease.set_ttl(-1);
  EXPECT_EQ(written(lease), R"({"TTL":"-1","keys":["YQ==",""]})");
  etcdserverpb::Member member;
  member.add_peerurls("http://a");
  member.add_peerurls("b\"");
  member.set_islearner(true);
  EXPECT_EQ(written(member), R"({"peerURLs":["http://a","b\""],"isLearner":true})");
  etcdserverpb::WatchCreateRequest create;
  create.add_filters(etcdserverpb::WatchCreateRequest::NOPUT);
  create.add_filters(etcdserverpb::WatchCreateRequest::NODELETE);
  EXPECT_EQ(written(create), R"({"filters":["NOPUT","NODELETE"]})");
}

TEST(JsonWrite, TheMemberOfAOneofIsWrittenEvenWhenZero) {
  etcdserverpb::Compare compare;
  EXPECT_EQ(written(compare), "{}");
  compare.set_version(0);
  EXPECT_EQ(written(compare), R"({"version":"0"})");
  compare.set_value("");
  EXPECT_EQ(written(compare), R"({"value":""})");
}

TEST(JsonWrite, Strings) {
  std::string out;
  append_string(out, std::string_view("a\"\\\b\f\n\r\t\x01\x1f\x7f/<\0", 14));
  EXPECT_EQ(out, "\"a\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\x7f/<\\u0000\"");
  out.clear();
  append_string(out, "h\xc3\xa4 \xf0\x9f\x98\x80 \xe2\x82\xac");
  EXPECT_EQ(out, "\"h\xc3\xa4 \xf0\x9f\x98\x80 \xe2\x82\xac\"");
}

TEST(JsonWrite, WhatIsNotUtf8IsReplaced) {
  for (const char* bad : {"\xff", "\x80", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80"}) {
    std::string out;
    append_string(out, bad);
    EXPECT_TRUE(is_utf8(out));
    EXPECT_NE(out.find("\xef\xbf\xbd"), std::string::npos);
  }
}

TEST(JsonWrite, Envelopes) {
  std::string out;
  append_error(out, {Code::kNotFound, "no \"x\""});
  EXPECT_EQ(out, R"({"code":5,"message":"no \"x\""})");
  out.clear();
  etcdserverpb::LeaseKeepAliveResponse response;
  response.set_id(7);
  append_result(out, response);
  EXPECT_EQ(out, "{\"result\":{\"ID\":\"7\"}}\n");
}

// However a message is cut, and whether or not its lists go on from part to part.
TEST(PartsWriter, PartsAreTheMessage) {
  etcdserverpb::RangeResponse whole;
  whole.mutable_header()->set_revision(9);
  for (int i = 0; i < 5; ++i) whole.add_kvs()->set_key("k" + std::to_string(i));
  whole.set_more(true);
  whole.set_count(7);
  for (int first = 0; first <= 5; ++first) {
    for (int second = first; second <= 5; ++second) {
      PartsWriter writer;
      std::string out;
      etcdserverpb::RangeResponse parts[3];
      *parts[0].mutable_header() = whole.header();
      for (int i = 0; i < 5; ++i) *parts[i < first ? 0 : i < second ? 1 : 2].add_kvs() = whole.kvs(i);
      parts[2].set_more(true);
      parts[2].set_count(7);
      for (const auto& part : parts) writer.add(out, part);
      writer.close(out);
      EXPECT_EQ(out, written(whole)) << first << " " << second;
    }
  }
}

TEST(PartsWriter, EmptyPartsAndOtherLists) {
  PartsWriter writer;
  std::string out;
  writer.close(out);
  EXPECT_EQ(out, "{}");
  out.clear();
  etcdserverpb::LeaseTimeToLiveResponse a;
  a.add_keys("a");
  writer.add(out, etcdserverpb::LeaseTimeToLiveResponse());
  writer.add(out, a);
  writer.add(out, etcdserverpb::LeaseTimeToLiveResponse());
  writer.add(out, a);
  writer.close(out);
  EXPECT_EQ(out, R"({"keys":["YQ==","YQ=="]})") << "a writer can be used again";
  out.clear();
  etcdserverpb::TxnRequest one;
  one.add_compare();
  etcdserverpb::TxnRequest two;
  two.add_compare()->set_key("a");
  two.add_success();
  two.add_failure();
  writer.add(out, one);
  writer.add(out, two);
  writer.close(out);
  EXPECT_EQ(out, R"({"compare":[{},{"key":"YQ=="}],"success":[{}],"failure":[{}]})");
}

}  // namespace
}  // namespace http::json
