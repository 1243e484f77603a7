#include "disk_copy.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

namespace conclave {
namespace {

using internal::Checksum;
using internal::load_file;
using internal::save_file;

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/conclave-copy-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file() const { return path_ + "/copy"; }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::string path_;
};

TEST(DiskCopy, ReplacesTheWholeAndLeavesNothingBehind) {
  const Folder folder;
  EXPECT_EQ(load_file(folder.file()).error().code, Code::kNotFound);
  ASSERT_TRUE(save_file(folder.file(), std::string(100000, 'x')));
  ASSERT_TRUE(save_file(folder.file(), "short"));
  EXPECT_EQ(load_file(folder.file()).or_throw(), "short");
  EXPECT_EQ(folder.files(), 1u);
  struct stat info {};
  ASSERT_EQ(::stat(folder.file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(DiskCopy, TellsWhatIsInTheWay) {
  const Folder folder;
  const auto no_folder = save_file(folder.file() + "/none/copy", "x");
  ASSERT_FALSE(no_folder);
  EXPECT_NE(no_folder.error().message.find("No such file"), std::string::npos);
  std::filesystem::create_directory(folder.file());
  EXPECT_FALSE(save_file(folder.file(), "x"));
  EXPECT_FALSE(load_file(folder.file()));
  EXPECT_EQ(folder.files(), 1u);
}

TEST(DiskCopy, TheChecksumKnowsWhereAFieldEnds) {
  const auto sum = [](std::initializer_list<std::string_view> fields) {
    Checksum checksum;
    for (const auto field : fields) checksum.add(field);
    return checksum.text();
  };
  EXPECT_EQ(sum({"a", "b"}), sum({"a", "b"}));
  EXPECT_NE(sum({"a", "b"}), sum({"ab", ""}));
  EXPECT_NE(sum({"a"}), sum({"a", ""}));
}

}  // namespace
}  // namespace conclave
