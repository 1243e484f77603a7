#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/disk.h"

namespace {

class RealDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "real_disk_test.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string content(File& file, uint64_t offset = 0, size_t size = 100) {
    std::string into(size, '?');
    auto got = file.read(offset, {reinterpret_cast<std::byte*>(into.data()), into.size()});
    EXPECT_TRUE(got) << got.error().message;
    into.resize(got.value_or(0));
    return into;
  }

  Disk& disk_ = real_disk();
  std::string folder_;
};

TEST_F(RealDiskTest, OpenModesSayWhetherTheFileMustExist) {
  EXPECT_EQ(disk_.open(path("a"), OpenMode::kRead).error().code, Code::kNotFound);
  EXPECT_EQ(disk_.open(path("a"), OpenMode::kReadWrite).error().code, Code::kNotFound);
  ASSERT_TRUE(disk_.open(path("a"), OpenMode::kCreateNew));
  EXPECT_EQ(disk_.open(path("a"), OpenMode::kCreateNew).error().code, Code::kAlreadyExists);
  EXPECT_TRUE(disk_.open(path("a"), OpenMode::kCreate));
  EXPECT_TRUE(disk_.open(path("a"), OpenMode::kReadWrite));
  struct stat status {};
  ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(RealDiskTest, ErrorNamesThePathAndTheSystemsText) {
  const std::string message = disk_.open(path("gone"), OpenMode::kRead).error().message;
  EXPECT_EQ(message, path("gone") + ": open: No such file or directory");
}

TEST_F(RealDiskTest, ReadsWhatWasWrittenAndLessAtTheEnd) {
  auto file = *disk_.open(path("a"), OpenMode::kCreateNew);
  ASSERT_TRUE(file->write(3, as_bytes("hello")));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(content(*file), std::string("\0\0\0hello", 8));
  EXPECT_EQ(content(*file, 6), "lo");
  EXPECT_EQ(content(*file, 50), "");
  EXPECT_EQ(*file->size(), 8u);
  ASSERT_TRUE(file->truncate(5));
  EXPECT_EQ(content(*file, 3), "he");
}

TEST_F(RealDiskTest, AllocateReservesZerosAndNeverShrinks) {
  auto file = *disk_.open(path("a"), OpenMode::kCreateNew);
  ASSERT_TRUE(file->write(0, as_bytes("x")));
  ASSERT_TRUE(file->allocate(1 << 20));
  EXPECT_EQ(*file->size(), 1u << 20);
  struct stat status {};
  ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
  EXPECT_GE(status.st_blocks * 512, 1 << 20);
  ASSERT_TRUE(file->allocate(10));
  ASSERT_TRUE(file->allocate(0));
  EXPECT_EQ(*file->size(), 1u << 20);
  EXPECT_EQ(content(*file, 0, 3), std::string("x\0\0", 3));
}

TEST_F(RealDiskTest, WriteToAFileOpenedForReadingFails) {
  ASSERT_TRUE(disk_.open(path("a"), OpenMode::kCreateNew));
  auto file = *disk_.open(path("a"), OpenMode::kRead);
  EXPECT_EQ(file->write(0, as_bytes("x")).error().code, Code::kDataLoss);
}

TEST_F(RealDiskTest, FullDeviceIsResourceExhausted) {
  auto file = disk_.open("/dev/full", OpenMode::kReadWrite);
  ASSERT_TRUE(file);
  const Status written = (*file)->write(0, as_bytes("x"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error(), (Error{Code::kResourceExhausted, "/dev/full: write: No space left on device"}));
}

TEST_F(RealDiskTest, ALimitOnTheSizeOfFilesIsResourceExhausted) {
  auto file = *disk_.open(path("a"), OpenMode::kCreateNew);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = 4, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Status written = file->write(0, as_bytes("hello"));
  const Status allocated = file->allocate(5);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error(), (Error{Code::kResourceExhausted, path("a") + ": write: File too large"}));
  ASSERT_FALSE(allocated);
  EXPECT_EQ(allocated.error().code, Code::kResourceExhausted);
  EXPECT_TRUE(file->write(0, as_bytes("hello")));
}

TEST_F(RealDiskTest, NoFreeDescriptorIsResourceExhausted) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit limit{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  const auto opened = disk_.open(path("a"), OpenMode::kCreate);
  const Status synced = disk_.sync_directory(folder_);
  const auto listed = disk_.list(folder_);
  const auto locked = disk_.lock(path("lock"));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), (Error{Code::kResourceExhausted, path("a") + ": open: Too many open files"}));
  EXPECT_EQ(synced.error().code, Code::kResourceExhausted);
  EXPECT_EQ(listed.error().code, Code::kResourceExhausted);
  EXPECT_EQ(locked.error().code, Code::kResourceExhausted);
  EXPECT_TRUE(disk_.open(path("a"), OpenMode::kCreate));
}

TEST_F(RealDiskTest, WriteOutIsAHintOnly) {
  auto file = *disk_.open(path("a"), OpenMode::kCreateNew);
  ASSERT_TRUE(file->write(0, as_bytes("hello")));
  EXPECT_TRUE(file->write_out(0, 5, false));
  EXPECT_TRUE(file->write_out(0, 1 << 20, true)) << "beyond the end";
  EXPECT_TRUE((*disk_.open("/dev/null", OpenMode::kReadWrite))->write_out(0, 5, true)) << "where there is no such call";
  EXPECT_EQ(*file->size(), 5u);
}

TEST_F(RealDiskTest, RenameReplacesAndRemoveRemoves) {
  ASSERT_TRUE((*disk_.open(path("a"), OpenMode::kCreate))->write(0, as_bytes("new")));
  ASSERT_TRUE((*disk_.open(path("b"), OpenMode::kCreate))->write(0, as_bytes("older")));
  ASSERT_TRUE(disk_.rename(path("a"), path("b")));
  EXPECT_FALSE(*disk_.exists(path("a")));
  EXPECT_EQ(content(**disk_.open(path("b"), OpenMode::kRead)), "new");
  ASSERT_TRUE(disk_.remove(path("b")));
  EXPECT_FALSE(*disk_.exists(path("b")));
  EXPECT_EQ(disk_.remove(path("b")).error().code, Code::kNotFound);
  EXPECT_EQ(disk_.rename(path("b"), path("c")).error().code, Code::kNotFound);
}

TEST_F(RealDiskTest, DirectoriesComeWithParentsAndGoWithContent) {
  ASSERT_TRUE(disk_.create_directory(path("x/y/z")));
  ASSERT_TRUE(disk_.create_directory(path("x/y/z")));
  struct stat status {};
  ASSERT_EQ(::stat(path("x/y").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_TRUE(disk_.open(path("x/y/2"), OpenMode::kCreate));
  ASSERT_TRUE(disk_.open(path("x/y/10"), OpenMode::kCreate));
  ASSERT_TRUE(disk_.sync_directory(path("x/y")));
  EXPECT_EQ(*disk_.list(path("x/y")), (std::vector<std::string>{"10", "2", "z"}));
  EXPECT_EQ(disk_.create_directory(path("x/y/2/under a file")).error().code, Code::kAlreadyExists);
  EXPECT_FALSE(*disk_.exists(path("x/y/2/under a file")));
  ASSERT_TRUE(disk_.remove_directory(path("x")));
  EXPECT_FALSE(*disk_.exists(path("x")));
  EXPECT_EQ(disk_.remove_directory(path("x")).error().code, Code::kNotFound);
  EXPECT_EQ(disk_.list(path("x")).error().code, Code::kNotFound);
  EXPECT_EQ(disk_.sync_directory(path("x")).error().code, Code::kNotFound);
}

TEST_F(RealDiskTest, ALockExcludesAnotherOfTheSameProcessAndEndsWithItsObject) {
  auto first = disk_.lock(path("lock"));
  ASSERT_TRUE(first);
  EXPECT_EQ(disk_.lock(path("lock")).error().code, Code::kUnavailable);
  first->reset();
  EXPECT_TRUE(disk_.lock(path("lock")));
}

TEST_F(RealDiskTest, DescriptorsAreNotInheritedByPrograms) {
  const int next = ::dup(0);
  ::close(next);
  auto file = *disk_.open(path("a"), OpenMode::kCreate);
  EXPECT_EQ(::fcntl(next, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST_F(RealDiskTest, FreeSpaceIsKnown) {
  EXPECT_GT(*disk_.free_bytes(folder_), 0u);
  EXPECT_EQ(disk_.free_bytes(path("gone")).error().code, Code::kNotFound);
}

}  // namespace
