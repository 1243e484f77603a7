#include "metrics/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Registry, SaysWhatWasCountedAndAsked) {
  Registry registry;
  Counter& puts = registry.counter("puts_total", "Puts.");
  puts.add();
  puts.add(2);
  double level = 1;
  registry.gauge("level", "The level.", [&] { return level; }, {{"name", "a\"b"}});
  registry.counter_from("asked_total", "Asked.", [] { return 7.0; });
  level = 4;
  const std::string text = registry.text();
  EXPECT_EQ(puts.value(), 3);
  EXPECT_THAT(text, HasSubstr("# HELP puts_total Puts.\n# TYPE puts_total counter\nputs_total 3"));
  EXPECT_THAT(text, HasSubstr("# TYPE level gauge\nlevel{name=\"a\\\"b\"} 4"));
  EXPECT_THAT(text, HasSubstr("# TYPE asked_total counter\nasked_total 7"));
}

TEST(Registry, PutsAnObservationIntoItsBuckets) {
  Registry registry;
  Histogram& took = registry.histogram("took_seconds", "Took.", exponential_buckets(0.001, 2, 3));
  took.observe(0.0015);
  const std::string text = registry.text();
  EXPECT_THAT(text, HasSubstr("took_seconds_bucket{le=\"0.001\"} 0"));
  EXPECT_THAT(text, HasSubstr("took_seconds_bucket{le=\"0.002\"} 1"));
  EXPECT_THAT(text, HasSubstr("took_seconds_bucket{le=\"0.004\"} 1"));
  EXPECT_THAT(text, HasSubstr("took_seconds_count 1"));
}

TEST(Registry, KnowsItsProcess) {
  Registry registry;
  registry.add_process_metrics();
  const std::string text = registry.text();
  EXPECT_THAT(text, HasSubstr("process_resident_memory_bytes "));
  EXPECT_THAT(text, Not(HasSubstr("process_resident_memory_bytes 0\n")));
  EXPECT_THAT(text, Not(HasSubstr("process_open_fds 0\n")));
}

}  // namespace
}  // namespace metrics
