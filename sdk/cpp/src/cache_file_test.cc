#include "cache_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace conclave {
namespace {

using internal::Json;
using internal::read_cache_file;
using internal::write_cache_file;

class CacheFile : public ::testing::Test {
 protected:
  CacheFile() {
    std::string pattern = ::testing::TempDir() + "cache-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/copy.json";
  }
  ~CacheFile() override { std::filesystem::remove_all(folder_); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  std::string text() const { return (std::stringstream() << std::ifstream(path_).rdbuf()).str(); }

  std::string folder_;
  std::string path_;
};

TEST_F(CacheFile, ReplacesTheWholeAndLeavesNothingBehind) {
  EXPECT_EQ(read_cache_file(path_, "test").error().code, Code::kNotFound);
  ASSERT_TRUE(write_cache_file(path_, "test", Json::object().set("a", std::string(100000, 'x'))));
  ASSERT_TRUE(write_cache_file(path_, "test", Json::object().set("a", "short").set("b", 2)));
  const auto content = read_cache_file(path_, "test");
  ASSERT_TRUE(content) << content.error().message;
  EXPECT_EQ((*content)["a"].text(), "short");
  EXPECT_EQ((*content)["b"].integer(), 2);
  EXPECT_EQ(files(), 1u);
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(CacheFile, TellsWhatIsInTheWay) {
  const auto no_folder = write_cache_file(path_ + "/none/copy", "test", Json::object());
  ASSERT_FALSE(no_folder);
  EXPECT_NE(no_folder.error().message.find("No such file"), std::string::npos);
  std::filesystem::create_directory(path_);
  EXPECT_FALSE(write_cache_file(path_, "test", Json::object()));
  EXPECT_FALSE(read_cache_file(path_, "test"));
  EXPECT_EQ(files(), 1u);
}

TEST_F(CacheFile, APipeIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(read_cache_file(path_, "test").error().code, Code::kDataLoss);
}

TEST_F(CacheFile, OneTooLargeIsNotWritten) {
  ASSERT_TRUE(write_cache_file(path_, "test", Json::object().set("a", 1)));
  const Json large = Json::object().set("a", std::string(internal::kCacheFileBytesMax, 'x'));
  EXPECT_EQ(write_cache_file(path_, "test", large).error().code, Code::kResourceExhausted);
  EXPECT_EQ((*read_cache_file(path_, "test"))["a"].integer(), 1);
}

TEST_F(CacheFile, AnotherKindIsRefused) {
  ASSERT_TRUE(write_cache_file(path_, "one", Json::object()));
  const auto other = read_cache_file(path_, "two");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kDataLoss);
  EXPECT_NE(other.error().message.find("two"), std::string::npos);
}

TEST_F(CacheFile, RefusesEveryCutAndEveryFlippedBitOfItself) {
  ASSERT_TRUE(write_cache_file(path_, "test", Json::object().set("key", "value").set("number", 42)));
  const std::string whole = text();
  const auto refused = [&](const std::string& changed) {
    std::ofstream(path_, std::ios::trunc) << changed;
    const auto read = read_cache_file(path_, "test");
    // Blanks around the line and the names of members that nobody reads do not matter.
    return !read ||
           ((*read)["key"].text() == "value" && (*read)["number"].integer() == 42 && changed.size() == whole.size());
  };
  for (std::size_t cut = 0; cut + 2 < whole.size(); ++cut) EXPECT_TRUE(refused(whole.substr(0, cut))) << cut;
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    EXPECT_TRUE(refused(changed)) << bit;
  }
}

}  // namespace
}  // namespace conclave
