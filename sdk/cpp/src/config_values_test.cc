#include "config_values.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace conclave {
namespace {

using internal::ConfigValues;
using internal::read_config;
using internal::write_config;

KeyValue kv(std::string key, std::string value) {
  KeyValue result;
  result.key = std::move(key);
  result.value = std::move(value);
  return result;
}

TEST(ConfigValues, AreNamedByWhatFollowsThePrefix) {
  RangeResult list;
  list.revision = Revision{7};
  list.kvs = {kv("config/orders/a", "1"), kv("config/orders/", "2")};
  const auto config = ConfigValues::of("config/orders/", list);
  EXPECT_EQ(config.values, (std::map<std::string, std::string, std::less<>>{{"a", "1"}, {"", "2"}}));
  EXPECT_EQ(config.revision, Revision{7});
}

TEST(ConfigValues, FollowTheChangesOfARevision) {
  ConfigValues config{.values = {{"a", "1"}, {"b", "2"}}, .revision = Revision{7}};
  WatchBatch batch;
  batch.revision = Revision{8};
  batch.events = {{.type = EventType::kPut, .kv = kv("p/a", "3")},
                  {.type = EventType::kDelete, .kv = kv("p/b", "")},
                  {.type = EventType::kPut, .kv = kv("p/c", "4")}};
  config.apply("p/", batch);
  EXPECT_EQ(config.values, (std::map<std::string, std::string, std::less<>>{{"a", "3"}, {"c", "4"}}));
  EXPECT_EQ(config.revision, Revision{8});
}

TEST(ConfigValues, OnDiskAreWhatWasWrittenOfThatPrefix) {
  std::string pattern = ::testing::TempDir() + "config-XXXXXX";
  const std::string folder = ::mkdtemp(pattern.data());
  const std::string path = folder + "/config.json";
  const ConfigValues config{.values = {{"a", std::string("\0\xff", 2)}, {"", "b"}}, .revision = Revision{42}};
  ASSERT_TRUE(write_config(path, "config/", config));
  const auto read = read_config(path, "config/");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->values, config.values);
  EXPECT_EQ(read->revision, config.revision);
  EXPECT_EQ(read_config(path, "other/").error().code, Code::kInvalidArgument);
  EXPECT_EQ(read_config(path + ".not", "config/").error().code, Code::kNotFound);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace conclave
