#include "config/duration.h"

#include <gtest/gtest.h>

namespace {

using config::parse_duration;
using namespace std::chrono_literals;

TEST(Duration, ReadsGosForms) {
  EXPECT_EQ(parse_duration("300ms"), 300ms);
  EXPECT_EQ(parse_duration("1.5h"), 90min);
  EXPECT_EQ(parse_duration("2h45m0.5s"), 2h + 45min + 500ms);
  EXPECT_EQ(parse_duration("0"), 0ns);
  EXPECT_EQ(parse_duration("-10s"), -10s);
  EXPECT_EQ(parse_duration("+1m"), 1min);
  EXPECT_EQ(parse_duration("7ns"), 7ns);
  EXPECT_EQ(parse_duration("3us"), 3us);
  EXPECT_EQ(parse_duration("3\xc2\xb5s"), 3us);
  EXPECT_EQ(parse_duration(".1s"), 100ms);
  EXPECT_EQ(parse_duration("1.s"), 1s);
  EXPECT_EQ(parse_duration("0.1s"), 100ms);
  EXPECT_EQ(parse_duration("2540400h10m10s"), 2540400h + 10min + 10s);
}

TEST(Duration, RefusesWhatGoRefuses) {
  for (const char* text :
       {"", "5", "s", ".s", "1x", "1 s", "-", "--1s", "1s-", "3000000h", "99999999999999999999s", "1m5"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

}  // namespace
