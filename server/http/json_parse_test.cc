// Expectations were taken from etcd's gateway, request by request.
#include "http/json_parse.h"

#include <gtest/gtest.h>

#include "api/rpc.pb.h"
#include "http/json_write.h"
#include "http/limits.h"

namespace http::json {
namespace {

template <class Message>
std::string read(std::string_view text) {
  Message message;
  const Status status = parse(text, message);
  if (!status) {
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    return "error: " + status.error().message;
  }
  std::string out;
  append(out, message);
  return out;
}
std::string range(std::string_view text) { return read<etcdserverpb::RangeRequest>(text); }
std::string put(std::string_view text) { return read<etcdserverpb::PutRequest>(text); }
std::string grant(std::string_view text) { return read<etcdserverpb::LeaseGrantRequest>(text); }
std::string txn(std::string_view text) { return read<etcdserverpb::TxnRequest>(text); }

struct Case {
  std::string_view text;
  std::string_view expected;
};

TEST(JsonParse, BlankIsAnEmptyObjectAndWhatFollowsTheValueIsIgnored) {
  for (const char* text : {"", "  \n", "{}", " { } ", "{}}}", "{} nonsense", "{}{\"key\":5}"}) {
    EXPECT_EQ(range(text), "{}") << text;
  }
  EXPECT_EQ(put(R"({"key":"YQ=="} trailing)"), R"({"key":"YQ=="})");
}

TEST(JsonParse, OnlyAnObjectWillDo) {
  EXPECT_EQ(range("[]"), "error: proto: syntax error (line 1:1): unexpected token [");
  EXPECT_EQ(range("null"), "error: proto: syntax error (line 1:1): unexpected token null");
  EXPECT_EQ(range("5"), "error: proto: syntax error (line 1:1): unexpected token 5");
  EXPECT_EQ(range("\"x\""), "error: proto: syntax error (line 1:1): unexpected token \"x\"");
  EXPECT_EQ(range("true"), "error: proto: syntax error (line 1:1): unexpected token true");
}

TEST(JsonParse, BrokenJson) {
  const Case cases[] = {
      {"{", "error: unexpected EOF"},
      {R"({"key":"YQ==")", "error: unexpected EOF"},
      {R"({"key":"YQ)", "error: unexpected EOF"},
      {"nonsense", "error: invalid character 'o' in literal null (expecting 'u')"},
      {R"({"key":})", "error: invalid character '}' looking for beginning of value"},
      {"{'key':'x'}", "error: invalid character '\\'' looking for beginning of object key string"},
      {R"({"key":"YQ==",})", "error: invalid character '}' looking for beginning of object key string"},
      {R"({"key":"\x"})", "error: invalid character 'x' in string escape code"},
      {R"({"a" 1})", "error: invalid character '1' after object key"},
      {R"({"a":1 "b"})", "error: invalid character '\"' after object key:value pair"},
      {R"({"a":[1 2]})", "error: invalid character '2' after array element"},
      {R"({"xx":nul})", "error: invalid character '}' in literal null (expecting 'l')"},
      {R"({"a":1]})", "error: invalid character ']' after object key:value pair"},
      {"\xef\xbb\xbf{}", "error: invalid character '\\xef' looking for beginning of value"},
      {"{\"x\":\"a\nb\"}", "error: invalid character '\\x0a' in string literal"},
  };
  for (const Case& c : cases) EXPECT_EQ(range(c.text), c.expected) << c.text;
}

TEST(JsonParse, NamesInSnakeOrCamelCase) {
  EXPECT_EQ(range(R"({"range_end":"YQ==","countOnly":true})"), R"({"range_end":"YQ==","count_only":true})");
  EXPECT_EQ(range(R"({"rangeEnd":"YQ==","k\u0065y":"YQ=="})"), R"({"key":"YQ==","range_end":"YQ=="})");
  EXPECT_EQ(range(R"({"Key":"YQ==","RANGE_END":5})"), "{}");  // case matters: unknown
}

TEST(JsonParse, AFieldTwiceIsRefusedInEitherSpellingAndEvenAsNull) {
  EXPECT_EQ(put(R"({"key":"YQ==","key":"YQ=="})"), "error: proto: (line 1:15): duplicate field \"key\"");
  EXPECT_EQ(put(R"({"prev_kv":true,"prevKv":true})"), "error: proto: (line 1:17): duplicate field \"prevKv\"");
  EXPECT_EQ(put(R"({"key":null,"key":null})"), "error: proto: (line 1:13): duplicate field \"key\"");
  EXPECT_EQ(put(R"({"zz":1,"zz":2})"), "{}");
}

TEST(JsonParse, NullIsUnset) {
  EXPECT_EQ(put(R"({"key":null,"value":"Yg==","lease":null,"prev_kv":null})"), R"({"value":"Yg=="})");
  EXPECT_EQ(txn(R"({"compare":null})"), "{}");
  EXPECT_EQ(txn(R"({"compare":[null]})"), "error: proto: syntax error (line 1:13): unexpected token null");
}

TEST(JsonParse, UnknownFieldsAreSkippedButMustBeWellFormed) {
  EXPECT_EQ(put(R"({"key":"YQ==","colour":{"x":[1,2,{"y":null}]},"zz":1.5})"), R"({"key":"YQ=="})");
  EXPECT_EQ(put(R"({"x":[],"y":{},"z":[[],{"a":[true,false,-1e5,"\ud83d\ude00"]}],"key":"YQ=="})"),
            R"({"key":"YQ=="})");
  for (const char* text : {R"({"x":[1,]})", R"({"x":{"a"}})", R"({"x":01})", R"({"x":1.})", R"({"x":-})", R"({"x":.5})",
                           R"({"x":+1})", R"({"x":1e})", R"({"x":tru})", R"({"x":"\ud800"})", R"({"x":"\udc00\ud800"})",
                           R"({"x":"\u12g4"})", R"({"x":[}})", "{\"x\":\"\xff\"}"}) {
    EXPECT_TRUE(put(text).starts_with("error: ")) << text;
  }
}

TEST(JsonParse, DeepNestingOfUnknownDataIsSkippedUpToALimit) {
  const auto nested = [](size_t depth) {
    return "{\"x\":" + std::string(depth, '[') + std::string(depth, ']') + ",\"key\":\"YQ==\"}";
  };
  EXPECT_EQ(put(nested(kJsonDepthMax - 1)), R"({"key":"YQ=="})");
  EXPECT_EQ(put(nested(kJsonDepthMax)), "error: exceeded max depth");
  EXPECT_EQ(put("{\"x\":" + std::string(1'000'000, '[')), "error: exceeded max depth");
}

TEST(JsonParse, MessagesNestUpToALimit) {
  const auto nested = [](int levels) {
    std::string text = "{}";
    for (int i = 0; i < levels; ++i) text = R"({"success":[{"request_txn":)" + text + "}]}";
    return text;
  };
  EXPECT_EQ(txn(nested(100)), nested(100));
  EXPECT_EQ(txn(nested(kJsonMessageDepthMax)), "error: exceeded max depth");
}

TEST(JsonParse, Integers) {
  const Case cases[] = {
      {"5", "5"},
      {"\"5\"", "5"},
      {"-5", "-5"},
      {"1e1", "10"},
      {"\"1e1\"", "10"},
      {"2.0", "2"},
      {"2.50e1", "25"},
      {"10e-1", "1"},
      {"1E+2", "100"},
      {"-0", ""},
      {"0", ""},
      {"0e5", ""},
      {"\"1 2\"", "1"},
      {"\"1,2\"", "1"},
      {"9223372036854775807", "9223372036854775807"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"\"\\u0035\"", "5"},
      {"100e-2", "1"},
  };
  for (const Case& c : cases) {
    const std::string expected = c.expected.empty() ? "{}" : "{\"TTL\":\"" + std::string(c.expected) + "\"}";
    EXPECT_EQ(grant("{\"TTL\":" + std::string(c.text) + "}"), expected) << c.text;
  }
  for (const char* text :
       {"2.5", "\"\"", "\" 1\"", "\"1 \"", "true", "[1]", "{}", "9223372036854775808", "1e19", "1e-1", "25e-1",
        "\"0x10\"", "\"1x\"", "\"+1\"", "\"abc\"", "\"\\u0000\"", "1e99999999999"}) {
    EXPECT_TRUE(grant("{\"TTL\":" + std::string(text) + "}").starts_with("error: proto: (line 1:8): invalid value"))
        << text << " " << grant("{\"TTL\":" + std::string(text) + "}");
  }
  EXPECT_EQ(grant(R"({"TTL":[1]})"), "error: proto: (line 1:8): invalid value for int64 field TTL: [");
  EXPECT_EQ(grant(R"({"TTL":01})"), "error: invalid character '1' after object key:value pair");
  EXPECT_EQ(read<etcdserverpb::AlarmRequest>(R"({"memberID":"18446744073709551615"})"),
            R"({"memberID":"18446744073709551615"})");
  EXPECT_TRUE(read<etcdserverpb::AlarmRequest>(R"({"memberID":-1})").starts_with("error: "));
}

TEST(JsonParse, Enums) {
  EXPECT_EQ(range(R"({"sort_order":"DESCEND","sort_target":3})"), R"({"sort_order":"DESCEND","sort_target":"MOD"})");
  EXPECT_EQ(range(R"({"sort_target":1.0})"), R"({"sort_target":"VERSION"})");
  EXPECT_EQ(range(R"({"sort_target":"nonsense","sort_order":"3"})"), "{}");
  EXPECT_EQ(range(R"({"sort_target":17})"), R"({"sort_target":17})");
  EXPECT_EQ(range(R"({"sort_target":true})"),
            "error: proto: (line 1:16): invalid value for enum field sortTarget: true");
  EXPECT_TRUE(range(R"({"sort_target":99999999999})").starts_with("error: "));
  EXPECT_EQ(read<etcdserverpb::WatchCreateRequest>(R"({"filters":["NOPUT",1,"what"]})"),
            R"({"filters":["NOPUT","NODELETE"]})");
}

TEST(JsonParse, WrongTypes) {
  EXPECT_EQ(put(R"({"key":5})"), "error: proto: (line 1:8): invalid value for bytes field key: 5");
  EXPECT_EQ(put(R"({"key":{"a":1}})"), "error: proto: (line 1:8): invalid value for bytes field key: {");
  EXPECT_TRUE(put(R"({"prev_kv":"true"})").starts_with("error: "));
  EXPECT_TRUE(put(R"({"prev_kv":1})").starts_with("error: "));
  EXPECT_EQ(txn(R"({"compare":{}})"), "error: proto: syntax error (line 1:12): unexpected token {");
  EXPECT_TRUE(txn(R"({"compare":[[]]})").starts_with("error: "));
  EXPECT_TRUE(read<etcdserverpb::Member>(R"({"name":5})").starts_with("error: "));
}

TEST(JsonParse, Bytes) {
  EXPECT_EQ(put(R"({"key":"Zm9","value":"Pj4-Pz8_"})"), R"({"key":"Zm8=","value":"Pj4+Pz8/"})");
  EXPECT_EQ(put(R"({"key":"Y\u0051=="})"), R"({"key":"YQ=="})");
  EXPECT_EQ(put(R"({"key":"Y\u0051\u003d="})"), R"({"key":"YQ=="})");
  EXPECT_EQ(put(R"({"key":"YWJj\r\nYWJj\r\n"})"), R"({"key":"YWJjYWJj"})");
  EXPECT_EQ(put(R"({"key":"YQ\n=="})"), "error: proto: (line 1:8): invalid value for bytes field key: \"YQ\\n==\"");
  for (const char* text : {"@@@", "a", "YQ=", "YW Jj", "Pj4+Pz8_"}) {
    EXPECT_EQ(put("{\"key\":\"" + std::string(text) + "\"}"),
              "error: proto: (line 1:8): invalid value for bytes field key: \"" + std::string(text) + "\"");
  }
  EXPECT_TRUE(put("{\"key\":\"YWJj\nYWJj\n\"}").starts_with("error: invalid character")) << "a raw line break";
  EXPECT_TRUE(put("{\"key\":\"YQ==").starts_with("error: unexpected EOF"));
}

TEST(JsonParse, StringsAreUtf8) {
  EXPECT_EQ(read<etcdserverpb::Member>(R"({"name":"h\u00e4\ud83d\ude00\"\/","peerURLs":["\n"]})"),
            "{\"name\":\"h\xc3\xa4\xf0\x9f\x98\x80\\\"/\",\"peerURLs\":[\"\\n\"]}");
  EXPECT_EQ(read<etcdserverpb::Member>("{\"name\":\"\xed\xa0\x80\"}"),
            "error: proto: syntax error (line 1:9): invalid UTF-8 in string");
}

TEST(JsonParse, OneofOnlyOnce) {
  EXPECT_EQ(txn(R"({"compare":[{"version":1,"mod_revision":2,"key":"YQ=="}]})"),
            "error: proto: (line 1:26): error parsing \"mod_revision\", oneof etcdserverpb.Compare.target_union is "
            "already set");
  EXPECT_EQ(txn(R"({"compare":[{"version":null,"mod_revision":"0"}]})"), R"({"compare":[{"mod_revision":"0"}]})");
}

TEST(JsonParse, AWholeTxn) {
  constexpr std::string_view kText =
      R"({"compare":[{"result":"GREATER","target":"CREATE","key":"YQ==","create_revision":"0"}],)"
      R"("success":[{"request_put":{"key":"YQ==","value":"Yg==","lease":"-5","prev_kv":true}}],)"
      R"("failure":[{"request_range":{"key":"YQ==","limit":"3"}},{"request_txn":{}}]})";
  EXPECT_EQ(txn(kText), kText);
}

TEST(Scanner, FindsObjectsThatArriveByteByByte) {
  const std::string text = " \n{\"a\":\"}\\\"{\",\"b\":[{}]}{\"c\":1} [";
  Scanner scanner;
  std::vector<std::string> found;
  std::string buffer;
  bool broken = false;
  for (const char c : text) {
    buffer += c;
    const auto result = scanner.scan(buffer);
    if (result == Scanner::Found::kObject) {
      found.push_back(buffer.substr(scanner.begin(), scanner.size()));
      buffer.erase(0, scanner.end());
      scanner.reset();
    }
    broken = result == Scanner::Found::kNotObject;
  }
  EXPECT_EQ(found, (std::vector<std::string>{"{\"a\":\"}\\\"{\",\"b\":[{}]}", "{\"c\":1}"}));
  EXPECT_TRUE(broken);
}

}  // namespace
}  // namespace http::json
