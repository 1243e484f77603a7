#include "apply/alarms.h"

#include <gtest/gtest.h>

namespace apply {
namespace {

using etcdserverpb::AlarmRequest;

std::string run(Alarms& alarms, AlarmRequest::AlarmAction action, uint64_t member, etcdserverpb::AlarmType kind) {
  AlarmRequest request;
  request.set_action(action);
  request.set_memberid(member);
  request.set_alarm(kind);
  auto response = alarms.apply(request);
  if (!response) return response.error().message;
  std::string text;
  for (const auto& alarm : response->alarms()) {
    text += std::to_string(alarm.memberid()) + ":" + std::to_string(alarm.alarm()) + " ";
  }
  return text;
}

TEST(Alarms, AnswerAsEtcds) {
  using etcdserverpb::CORRUPT;
  using etcdserverpb::NONE;
  using etcdserverpb::NOSPACE;
  Alarms alarms;
  EXPECT_EQ(run(alarms, AlarmRequest::GET, 0, NONE), "");
  EXPECT_EQ(run(alarms, AlarmRequest::DEACTIVATE, 1, NOSPACE), "");
  EXPECT_EQ(run(alarms, AlarmRequest::ACTIVATE, 9, NOSPACE), "9:1 ");
  EXPECT_EQ(run(alarms, AlarmRequest::ACTIVATE, 9, NOSPACE), "9:1 ") << "set before";
  EXPECT_EQ(run(alarms, AlarmRequest::ACTIVATE, 1, NONE), "");
  EXPECT_TRUE(alarms.no_space());
  EXPECT_FALSE(alarms.corrupt());
  EXPECT_EQ(run(alarms, AlarmRequest::ACTIVATE, 2, CORRUPT), "2:2 ");
  EXPECT_EQ(run(alarms, AlarmRequest::ACTIVATE, 2, NOSPACE), "2:1 ");
  EXPECT_EQ(run(alarms, AlarmRequest::GET, 0, NONE), "2:1 2:2 9:1 ");
  EXPECT_EQ(run(alarms, AlarmRequest::GET, 0, CORRUPT), "2:2 ");
  EXPECT_EQ(run(alarms, static_cast<AlarmRequest::AlarmAction>(7), 2, CORRUPT), "");
  EXPECT_EQ(run(alarms, AlarmRequest::DEACTIVATE, 9, NOSPACE), "9:1 ");
  EXPECT_TRUE(alarms.no_space()) << "member 2 has it still";
  EXPECT_EQ(run(alarms, AlarmRequest::DEACTIVATE, 2, NOSPACE), "2:1 ");
  EXPECT_FALSE(alarms.no_space());
  EXPECT_TRUE(alarms.corrupt());
}

TEST(Alarms, SurviveBeingStored) {
  Alarms alarms;
  EXPECT_EQ(alarms.serialize(), "");
  run(alarms, AlarmRequest::ACTIVATE, 1, etcdserverpb::CORRUPT);
  run(alarms, AlarmRequest::ACTIVATE, ~uint64_t{0}, etcdserverpb::NOSPACE);
  run(alarms, AlarmRequest::ACTIVATE, 3, static_cast<etcdserverpb::AlarmType>(17));
  auto again = Alarms::parse(alarms.serialize());
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, alarms);
  EXPECT_EQ(again->list().size(), 3u);
  EXPECT_EQ(Alarms::parse("\xff\xff").error().code, Code::kDataLoss);
}

TEST(Alarms, HaveALimit) {
  Alarms alarms;
  for (uint64_t member = 1; member <= kAlarmsMax; ++member) {
    run(alarms, AlarmRequest::ACTIVATE, member, etcdserverpb::NOSPACE);
  }
  EXPECT_EQ(run(alarms, AlarmRequest::ACTIVATE, kAlarmsMax + 1, etcdserverpb::NOSPACE), kErrorTooManyAlarms);
  EXPECT_EQ(run(alarms, AlarmRequest::ACTIVATE, 1, etcdserverpb::NOSPACE), "1:1 ");
  EXPECT_EQ(alarms.list().size(), kAlarmsMax);
}

}  // namespace
}  // namespace apply
