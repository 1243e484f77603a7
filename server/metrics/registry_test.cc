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

TEST(Registry, TellsLabelsApartWithinOneFamily) {
  Registry registry;
  registry.counter("sent_total", "Sent.", {{"To", "a"}}).add(1);
  (void)registry.text();  // more may come after a scrape
  registry.counter("sent_total", "Sent.", {{"To", "b"}}).add(2);
  registry.counter("sent_total", "Sent.", {{"To", "a"}}).add(4);  // the same numbers as the first
  Gauge& active = registry.level("active", "Active.", {{"Local", "a"}, {"Remote", "b"}});
  active.set(1);
  registry.histogram("took_seconds", "Took.", {1}, {{"To", "a"}}).observe(0.5);
  registry.gauge("asked", "Asked.", [] { return 1.0; }, {{"n", "1"}});
  registry.gauge("asked", "Asked.", [] { return 2.0; }, {{"n", "2"}});
  const std::string text = registry.text();
  EXPECT_EQ(active.value(), 1);
  EXPECT_THAT(text, HasSubstr("sent_total{To=\"a\"} 5"));
  EXPECT_THAT(text, HasSubstr("sent_total{To=\"b\"} 2"));
  EXPECT_THAT(text, HasSubstr("# TYPE active gauge\nactive{Local=\"a\",Remote=\"b\"} 1"));
  EXPECT_THAT(text, HasSubstr("took_seconds_count{To=\"a\"} 1"));
  EXPECT_THAT(text, HasSubstr("# TYPE asked gauge\nasked{n=\"1\"} 1\nasked{n=\"2\"} 2\n"));
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
