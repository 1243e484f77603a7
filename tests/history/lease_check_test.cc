#include "history/lease_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "history/test_builders.h"

namespace history {
namespace {

using testing::HasSubstr;
using Kind = LeaseCall::Kind;

class Leases : public testing::Test {
 protected:
  void call(Kind kind, int64_t at, int64_t returned, int64_t ttl) {
    calls.push_back({.kind = kind,
                     .lease = 1,
                     .call = ms(at),
                     .returned = ms(returned),
                     .outcome = Outcome::kOk,
                     .ttl_seconds = ttl});
  }
  void open(Kind kind, int64_t at) { calls.push_back({.kind = kind, .lease = 1, .call = ms(at)}); }
  void saw(int64_t at, bool there) {
    sightings.push_back({.lease = 1, .key = "k", .call = ms(at), .returned = ms(at + 1), .there = there});
  }
  std::string fault() {
    return check_leases(calls, sightings, {.late_max = ms(1000), .unknown_within = ms(3000)}).text;
  }
  std::vector<LeaseCall> calls;
  std::vector<LeaseSighting> sightings;
};

TEST_F(Leases, EndInTheirTime) {
  call(Kind::kGrant, 0, 10, 5);
  saw(4000, true);
  saw(5500, false);
  EXPECT_EQ(fault(), "");
  call(Kind::kKeepAlive, 5600, 5610, 0);
  EXPECT_EQ(fault(), "");
}

TEST_F(Leases, NeverEarly) {
  call(Kind::kGrant, 0, 10, 5);
  saw(4990, false);
  EXPECT_THAT(fault(), HasSubstr("before its lease's time"));
  sightings.clear();
  call(Kind::kKeepAlive, 4000, 4990, 0);
  EXPECT_THAT(fault(), HasSubstr("ended before its time"));
}

TEST_F(Leases, ARenewalCountsFromWhenItWasSent) {
  call(Kind::kGrant, 0, 10, 5);
  call(Kind::kKeepAlive, 3000, 6000, 5);
  saw(7990, false);
  EXPECT_THAT(fault(), HasSubstr("before its lease's time"));
  sightings.clear();
  saw(8000, false);
  EXPECT_EQ(fault(), "");
}

TEST_F(Leases, ARenewalAfterTheEndIsFound) {
  call(Kind::kGrant, 0, 10, 5);
  saw(5500, false);
  call(Kind::kKeepAlive, 5600, 5610, 5);
  EXPECT_NE(fault(), "");
}

TEST_F(Leases, NotLateEither) {
  call(Kind::kGrant, 0, 10, 5);
  saw(6005, true);
  EXPECT_EQ(fault(), "");
  saw(6020, true);
  EXPECT_THAT(fault(), HasSubstr("outlived its lease"));
  open(Kind::kKeepAlive, 2000);  // may have been received until 5000
  EXPECT_EQ(fault(), "");
}

TEST_F(Leases, ARevocationMayEndItAndThenItStaysSo) {
  call(Kind::kGrant, 0, 10, 5);
  call(Kind::kRevoke, 1000, 1010, 0);
  saw(1005, true);
  saw(1020, false);
  EXPECT_EQ(fault(), "");
  call(Kind::kKeepAlive, 1005, 1500, 5);  // at the same time
  EXPECT_EQ(fault(), "");
  call(Kind::kKeepAlive, 1020, 1500, 5);
  EXPECT_THAT(fault(), HasSubstr("after its revocation"));
  calls.pop_back();
  saw(1030, true);
  EXPECT_THAT(fault(), HasSubstr("outlived the acknowledged revocation"));
}

TEST_F(Leases, ARevocationWithoutAnAnswerMayHappen) {
  call(Kind::kGrant, 0, 10, 5);
  open(Kind::kRevoke, 1000);
  saw(900, false);
  EXPECT_NE(fault(), "");
  sightings.clear();
  saw(2000, false);
  EXPECT_EQ(fault(), "");
}

}  // namespace
}  // namespace history
