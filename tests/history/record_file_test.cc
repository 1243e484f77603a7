#include "history/record_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "history/generator.h"
#include "history/test_builders.h"

namespace history {
namespace {

using testing::HasSubstr;

std::string text_of(const Record& record) {
  std::ostringstream out;
  write_record(record, out);
  return out.str();
}

TEST(RecordFile, ComesBackAsItWas) {
  Record record = generate({.seed = 3, .operations = 200}).record;
  record.lease_calls.push_back({.kind = LeaseCall::Kind::kGrant,
                                .lease = 1LL << 62,
                                .client = 4,
                                .call = ms(3),
                                .returned = ms(4),
                                .outcome = Outcome::kOk,
                                .ttl_seconds = 5});
  record.lease_calls.push_back({.kind = LeaseCall::Kind::kRevoke, .lease = 1LL << 62, .call = ms(5)});
  record.lease_sightings.push_back({.lease = 2, .key = "k", .call = ms(1), .returned = ms(2), .there = true});
  record.holds.push_back({.lock = "l", .client = 2, .token = 7, .acquired = ms(5), .until = ms(6)});
  record.holds.push_back({.lock = "l", .client = 3, .token = 8, .acquired = ms(7)});
  record.uses.push_back({.lock = "l", .client = 2, .token = 7});
  const std::string text = text_of(record);
  std::istringstream in(text);
  const auto back = read_record(in);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(text_of(*back), text);
  ASSERT_EQ(back->operations.size(), record.operations.size());
  for (size_t i = 0; i < record.operations.size(); ++i) {
    EXPECT_EQ(describe(back->operations[i]), describe(record.operations[i]));
    EXPECT_EQ(back->operations[i].answers.size(), record.operations[i].answers.size());
  }
  EXPECT_EQ(back->holds[1].until, kNever);
  EXPECT_EQ(back->lease_calls[0].lease, 1LL << 62);
  EXPECT_THAT(check_all(*back, {.leases = {ms(1000), ms(1000)}, .watches_complete = true}, nullptr),
              testing::IsEmpty());
}

TEST(RecordFile, TellsTheLineThatIsWrong) {
  for (const char* wrong : {"{\"operation\": 5}", "{}", "nonsense", "{\"operation\":{\"kind\":1}}"}) {
    std::istringstream in("{\"operation\":{\"client\":1,\"call\":0.5}}\n" + std::string(wrong) + "\n");
    const auto record = read_record(in);
    ASSERT_FALSE(record) << wrong;
    EXPECT_THAT(record.error().message, HasSubstr("line 2"));
  }
}

TEST(RecordFile, AllChecksRunOnARecord) {
  const auto faults_of = [](const std::string& text, bool complete) {
    std::istringstream in(text);
    auto record = read_record(in);
    EXPECT_TRUE(record);
    return check_all(*record, {.leases = {ms(1000), ms(1000)}, .watches_complete = complete}, nullptr).size();
  };
  const std::string put =
      R"({"operation":{"client":1,"call":1,"returned":2,"outcome":"OK","revision":2,"success":[{"kind":"PUT","key":"a","value":"1"}],"answers":[{}]}})"
      "\n";
  const std::string get =
      R"({"operation":{"client":2,"call":3,"returned":4,"outcome":"OK","revision":"2","success":[{"key":"a"}],"answers":[{}]}})"
      "\n";
  const std::string watch =
      R"({"watch":{"watch":"w","key":"a","kind":"STARTED","revision":2}})"
      "\n"
      R"({"watch":{"watch":"w","revision":3,"events":[{"kv":{"key":"a","value":"2","mod_revision":3,"create_revision":2,"version":2}}]}})"
      "\n";
  EXPECT_EQ(faults_of(put, false), 0U);
  EXPECT_EQ(faults_of(put + get, false), 2U);    // both checks of operations
  EXPECT_EQ(faults_of(put + watch, false), 1U);  // an acknowledged write is not heard
  EXPECT_EQ(faults_of(put + watch, true), 2U);   // and a value that nobody wrote
  EXPECT_EQ(faults_of(R"({"lock_hold":{"lock":"l","client":1,"token":3,"acquired":1}})"
                      "\n"
                      R"({"lock_hold":{"lock":"l","client":2,"token":4,"acquired":2}})"
                      "\n",
                      false),
            1U);
  EXPECT_EQ(
      faults_of(R"({"lease_call":{"kind":"GRANT","lease":"7","call":1,"returned":2,"outcome":"OK","ttl_seconds":9}})"
                "\n"
                R"({"lease_sighting":{"lease":"7","key":"a","call":3,"returned":4}})"
                "\n",
                false),
      1U);
}

}  // namespace
}  // namespace history
