#include "history/lock_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "history/test_builders.h"

namespace history {
namespace {

using testing::HasSubstr;

LockHold hold(uint64_t client, int64_t token, int64_t acquired, int64_t until, const std::string& lock = "l") {
  return {.lock = lock, .client = client, .token = token, .acquired = ms(acquired), .until = ms(until)};
}
std::string fault(const std::vector<LockHold>& holds, const std::vector<FencedUse>& uses = {}) {
  return check_locks(holds, uses).text;
}

TEST(Locks, OneHolderAtATime) {
  EXPECT_EQ(fault({hold(1, 5, 0, 10), hold(2, 7, 10, 20), hold(1, 6, 0, 30, "other")}), "");
  EXPECT_THAT(fault({hold(1, 5, 0, 10), hold(2, 7, 9, 20)}), HasSubstr("two holders"));
  EXPECT_THAT(fault({hold(1, 5, 0, 50), hold(2, 7, 60, 70), hold(3, 8, 65, 80)}), HasSubstr("two holders"));
  LockHold forever = hold(1, 5, 0, 0);
  forever.until = kNever;
  EXPECT_THAT(fault({forever, hold(2, 7, 1000, 1001)}), HasSubstr("two holders"));
}

TEST(Locks, TokensRise) {
  EXPECT_THAT(fault({hold(1, 7, 0, 10), hold(2, 5, 20, 30)}), HasSubstr("does not rise"));
  EXPECT_THAT(fault({hold(1, 7, 0, 10), hold(2, 7, 20, 30)}), HasSubstr("does not rise"));
}

TEST(Locks, UsesAreFenced) {
  const std::vector<LockHold> holds = {hold(1, 5, 0, 10), hold(2, 7, 20, 30)};
  EXPECT_EQ(fault(holds, {{"l", 1, 5}, {"l", 1, 5}, {"l", 2, 7}}), "");
  EXPECT_THAT(fault(holds, {{"l", 2, 7}, {"l", 1, 5}}), HasSubstr("after token 7"));
  EXPECT_THAT(fault(holds, {{"l", 3, 6}}), HasSubstr("never held it"));
  EXPECT_THAT(fault(holds, {{"l", 2, 5}}), HasSubstr("never held it"));
}

}  // namespace
}  // namespace history
