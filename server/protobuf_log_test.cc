#include "protobuf_log.h"

#include <gmock/gmock.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "api/peer.pb.h"
#include "base/log.h"

namespace {

using testing::HasSubstr;

TEST(ProtobufLog, ItsLinesAreOursAndFew) {
  std::string folder = std::filesystem::temp_directory_path() / "protobuf_log_test.XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/log";
  ASSERT_TRUE(open_log({.outputs = path}));
  log_for_protobuf();
  testing::internal::CaptureStderr();
  conclavepb::LeaseAnswer answer;
  const std::string wire = {conclavepb::LeaseAnswer::kMessageFieldNumber << 3 | 2, 1, '\xff'};
  for (int i = 0; i < 1000; ++i) (void)answer.ParseFromString(wire);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ASSERT_TRUE(open_log({}));
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const std::string line = text.str();
  EXPECT_TRUE(line.starts_with("{\"level\":\"warn\"")) << line;
  EXPECT_THAT(line, HasSubstr("UTF-8"));
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line: " << line;
  std::filesystem::remove_all(folder);
}

}  // namespace
