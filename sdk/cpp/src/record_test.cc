#include "record.h"

#include <gtest/gtest.h>

#include "health_filter.h"

namespace conclave {
namespace {

using internal::decode_record;
using internal::encode_record;
using internal::HealthFilter;

Instance orders() {
  return {.id = "orders-7f3a",
          .service = "orders",
          .address = "10.0.0.7",
          .port = 8080,
          .version = "2.3.1",
          .zone = "eu-1a",
          .metadata = {{"protocol", "http"}},
          .start = "9f0c6a1be27d4410",
          .started_ms = 1790000000000};
}

TEST(Record, IsWrittenAsDocumented) {
  EXPECT_EQ(encode_record(orders()),
            R"({"v":1,"id":"orders-7f3a","service":"orders","address":"10.0.0.7","port":8080,"version":"2.3.1",)"
            R"("zone":"eu-1a","weight":100,"metadata":{"protocol":"http"},"health":{"level":"passing","reason":""},)"
            R"("draining":false,"start":"9f0c6a1be27d4410","started_ms":1790000000000})");
  EXPECT_EQ(internal::record_key(orders()), "/services/orders/orders-7f3a");
}

TEST(Record, IsReadAsWritten) {
  Instance instance = orders();
  instance.health = Health::warning("disk \"90\" %\n");
  instance.draining = true;
  instance.weight = 0;
  EXPECT_EQ(encode_record(decode_record("/services/orders/orders-7f3a", encode_record(instance)).or_throw()),
            encode_record(instance));
}

TEST(Record, NeedsOnlyItsRequiredMembersAndIgnoresUnknownOnes) {
  const auto instance =
      decode_record(R"({"v":1,"id":"a","service":"s","address":"h","port":1,"colour":{"x":[1]}})").or_throw();
  EXPECT_EQ(instance.weight, 100);
  EXPECT_EQ(instance.health, Health::passing());
  EXPECT_TRUE(instance.usable());
}

TEST(Record, RefusesWhatItCannotRead) {
  for (const char* text :
       {"", "[]", "{", R"({"v":2,"id":"a","service":"s","address":"h","port":1})",
        R"({"v":1,"service":"s","address":"h","port":1})", R"({"v":1,"id":"a","service":"s","address":"h"})",
        R"({"v":1,"id":"a","service":"s","address":"h","port":0})",
        R"({"v":1,"id":"a","service":"s","address":"h","port":65536})",
        R"({"v":1,"id":7,"service":"s","address":"h","port":1})",
        R"({"v":1,"id":"a","service":"s","address":"h","port":1,"weight":-1})",
        R"({"v":1,"id":"a","service":"s","address":"h","port":1,"weight":65536})",
        R"({"v":1,"id":"a","service":"s","address":"h","port":1,"health":{"level":"fine"}})",
        R"({"v":1,"id":"a","service":"s","address":"h","port":1,"metadata":{"n":1}})",
        R"({"v":1,"id":"a","service":"s","address":"h","port":1,"draining":"yes"})"})
    EXPECT_FALSE(decode_record(text)) << text;
  EXPECT_FALSE(decode_record("/services/orders/other", encode_record(orders())));
}

TEST(Record, HostPortPutsIpv6InBrackets) {
  EXPECT_EQ(orders().host_port(), "10.0.0.7:8080");
  EXPECT_EQ((Instance{.address = "fd00::7", .port = 80}).host_port(), "[fd00::7]:80");
}

TEST(Record, NamesHaveNoSlash) {
  EXPECT_TRUE(internal::valid_name("pay-eu.2_x"));
  for (const char* name : {"", "-a", "a/b", "a b", "ä"}) EXPECT_FALSE(internal::valid_name(name)) << name;
  EXPECT_TRUE(internal::valid_name(std::string(128, 'a')));
  EXPECT_FALSE(internal::valid_name(std::string(129, 'a')));
}

TEST(Record, KnowsUtf8) {
  for (const char* text : {"", "abc", "\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"})
    EXPECT_TRUE(internal::valid_utf8(text)) << text;
  for (const char* text :
       {"\x80", "\xC3", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF", "a\xE2\x82"})
    EXPECT_FALSE(internal::valid_utf8(text)) << text;
}

TEST(HealthFilter, TakesTheFirstAnswerAtOnceAndThenWaitsForARow) {
  HealthFilter filter(3, 2);
  EXPECT_EQ(filter.observe(Health::passing()), Health::passing());
  const Health bad = Health::critical("database");
  EXPECT_FALSE(filter.observe(bad));
  EXPECT_FALSE(filter.observe(bad));
  EXPECT_FALSE(filter.observe(Health::passing()));  // the row is broken
  EXPECT_FALSE(filter.observe(bad));
  EXPECT_FALSE(filter.observe(bad));
  EXPECT_EQ(filter.observe(bad), bad);
  EXPECT_FALSE(filter.observe(Health::passing()));
  EXPECT_EQ(filter.observe(Health::passing()), Health::passing());
}

TEST(HealthFilter, OfARowTheLevelNearestToThePresentOneWins) {
  HealthFilter filter(3, 1);
  (void)filter.observe(Health::passing());
  (void)filter.observe(Health::critical("a"));
  (void)filter.observe(Health::warning("b"));
  EXPECT_EQ(filter.observe(Health::critical("c")), Health::warning("b"));
  EXPECT_EQ(filter.observe(Health::passing()), Health::passing());
}

}  // namespace
}  // namespace conclave
