#include "base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <vector>

namespace {

class Log : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("log_test." + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    ASSERT_TRUE(open_log({.level = LogLevel::kWarn, .json = false, .outputs = "stderr"}));
    std::filesystem::remove_all(folder_);
  }

  std::string path(const char* name = "log") const { return folder_ / name; }
  std::vector<std::string> lines(const char* name = "log") const {
    std::ifstream in(path(name));
    std::vector<std::string> found;
    for (std::string line; std::getline(in, line);) found.push_back(line);
    return found;
  }
  // The line without its time, which must be there and look like one.
  static std::string without_time(const std::string& line) {
    const size_t end = line.find("Z");
    if (end == std::string::npos || end < 26) return "no time in: " + line;
    const size_t begin = end - 26;  // 2026-11-30T10:21:35.097403
    if (line[begin + 4] != '-' || line[begin + 10] != 'T' || line[begin + 19] != '.') return "no time in: " + line;
    return line.substr(0, begin) + "TIME" + line.substr(end + 1);
  }

  std::filesystem::path folder_;
};

TEST_F(Log, JsonLineHasLevelTimeMessageAndTypedFields) {
  ASSERT_TRUE(open_log({.outputs = path()}));
  log_info("ready to serve client requests", {{"port", 2379}, {"url", "http://a:1"}, {"fresh", true}, {"took_s", 0.5}});
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_EQ(without_time(lines()[0]),
            R"({"level":"info","ts":"TIME","msg":"ready to serve client requests","port":2379,"url":"http://a:1",)"
            R"("fresh":true,"took_s":0.500000})");
}

TEST_F(Log, ConsoleLineIsTabSeparated) {
  ASSERT_TRUE(open_log({.json = false, .outputs = path()}));
  log_warn("slow", {{"took_ms", 120}, {"file", "0001.wal"}});
  log_error("no fields");
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_EQ(without_time(lines()[0]), "TIME\twarn\tslow\t{\"took_ms\":120, \"file\":\"0001.wal\"}");
  EXPECT_EQ(without_time(lines()[1]), "TIME\terror\tno fields");
}

TEST_F(Log, LevelFilters) {
  ASSERT_TRUE(open_log({.level = LogLevel::kPanic, .outputs = path()}));
  log_error("below");
  log(LogLevel::kPanic, "at");
  log(LogLevel::kFatal, "above");
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_NE(lines()[0].find(R"("level":"panic")"), std::string::npos);
  EXPECT_NE(lines()[1].find(R"("level":"fatal")"), std::string::npos);
}

TEST_F(Log, BinaryKeysAndControlCharactersStayOneJsonLine) {
  ASSERT_TRUE(open_log({.outputs = path()}));
  log_info("key \"a\\b\"\n\x01", {{"bytes", std::string("\xff\xc3\xa4\xed\xa0\x80\0z", 8)}});
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_EQ(without_time(lines()[0]), R"({"level":"info","ts":"TIME","msg":"key \"a\\b\"\n\u0001",)"
                                      "\"bytes\":\"\\ufffd\xc3\xa4\\ufffd\\ufffd\\ufffd\\u0000z\"}");
}

TEST_F(Log, NumbersThatJsonDoesNotKnowAreText) {
  ASSERT_TRUE(open_log({.outputs = path()}));
  log_info("m", {{"a", std::nan("")}, {"b", -INFINITY}});
  EXPECT_EQ(without_time(lines()[0]), R"({"level":"info","ts":"TIME","msg":"m","a":"nan","b":"-inf"})");
}

TEST_F(Log, SeveralOutputsEachGetTheLine) {
  ASSERT_TRUE(open_log({.outputs = path("one") + "," + path("two")}));
  log_info("both");
  EXPECT_EQ(lines("one").size(), 1u);
  EXPECT_EQ(lines("two"), lines("one"));
}

TEST_F(Log, RefusesAFileThatCannotBeOpenedAndKeepsTheOldOutput) {
  ASSERT_TRUE(open_log({.outputs = path()}));
  std::ofstream(path("file")).put('x');
  const std::string under_a_file = path("file") + "/log";
  const Status opened = open_log({.level = LogLevel::kFatal, .outputs = under_a_file});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kInvalidArgument);
  EXPECT_NE(opened.error().message.find(under_a_file), std::string::npos);
  log_info("still here");
  EXPECT_EQ(lines().size(), 1u);
  EXPECT_FALSE(open_log({.outputs = ""}));
}

}  // namespace
