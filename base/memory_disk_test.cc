#include "base/memory_disk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace {

using Operation = MemoryDisk::Operation;
using Loss = MemoryDisk::Loss;

class MemoryDiskTest : public testing::Test {
 protected:
  std::unique_ptr<File> make(const std::string& path, MemoryDisk* disk = nullptr) {
    auto file = (disk ? *disk : disk_).open(path, OpenMode::kCreate);
    EXPECT_TRUE(file) << file.error().message;
    return std::move(*file);
  }
  std::string content(const std::string& path) { return disk_.content(path).value_or("(none)"); }

  MemoryDisk disk_;
  SeededRandom random_{1};
};

TEST_F(MemoryDiskTest, IsADisk) {
  EXPECT_EQ(disk_.open("/d/a", OpenMode::kCreate).error().code, Code::kNotFound);
  ASSERT_TRUE(disk_.create_directory("/d/e"));
  EXPECT_EQ(disk_.open("/d/a", OpenMode::kReadWrite).error().code, Code::kNotFound);
  EXPECT_EQ(disk_.open("/d/e", OpenMode::kRead).error().code, Code::kDataLoss);
  auto file = make("/d/a");
  EXPECT_EQ(disk_.open("/d/a", OpenMode::kCreateNew).error().code, Code::kAlreadyExists);
  ASSERT_TRUE(file->write(2, as_bytes("hello")));
  ASSERT_TRUE(file->allocate(9));
  ASSERT_TRUE(file->allocate(1));
  EXPECT_EQ(content("/d/a"), std::string("\0\0hello\0\0", 9));
  std::string into(4, '?');
  EXPECT_EQ(*file->read(6, {reinterpret_cast<std::byte*>(into.data()), 4}), 3u);
  EXPECT_EQ(into, std::string("o\0\0?", 4));
  EXPECT_EQ(*file->read(60, {reinterpret_cast<std::byte*>(into.data()), 4}), 0u);
  ASSERT_TRUE(file->truncate(3));
  EXPECT_EQ(*file->size(), 3u);
  EXPECT_EQ((*disk_.open("/d/a", OpenMode::kRead))->write(0, as_bytes("x")).error().code, Code::kDataLoss);
  EXPECT_EQ(*disk_.list("/d"), (std::vector<std::string>{"a", "e"}));
  ASSERT_TRUE(disk_.rename("/d/a", "/d/e/b"));
  EXPECT_FALSE(*disk_.exists("/d/a"));
  EXPECT_TRUE(*disk_.exists("d/e/b"));
  EXPECT_EQ(disk_.remove("/d/a").error().code, Code::kNotFound);
  ASSERT_TRUE(disk_.remove_directory("/d"));
  EXPECT_EQ(disk_.list("/d").error().code, Code::kNotFound);
  EXPECT_EQ(disk_.list("/")->size(), 0u);
}

TEST_F(MemoryDiskTest, ALockExcludesAndEndsWithItsObjectOrTheProcess) {
  auto first = disk_.lock("/lock");
  ASSERT_TRUE(first);
  EXPECT_EQ(disk_.lock("/lock").error().code, Code::kUnavailable);
  first->reset();
  auto second = disk_.lock("/lock");
  ASSERT_TRUE(second);
  disk_.restart();
  auto third = disk_.lock("/lock");
  ASSERT_TRUE(third);
  second->reset();  // void: does not let go of the third
  EXPECT_EQ(disk_.lock("/lock").error().code, Code::kUnavailable);
}

TEST_F(MemoryDiskTest, SyncedDataSurvivesOnlyWithItsSyncedName) {
  ASSERT_TRUE(make("/a")->write(0, as_bytes("one")));
  ASSERT_TRUE(disk_.sync_directory("/"));
  auto file = make("/b");
  ASSERT_TRUE(file->write(0, as_bytes("two")));
  ASSERT_TRUE(file->sync());
  disk_.crash(random_, Loss::kEverything);
  EXPECT_EQ(content("/a"), "");
  EXPECT_EQ(content("/b"), "(none)");
  EXPECT_EQ(file->sync().error().code, Code::kDataLoss) << "the file was open when the power went";
}

TEST_F(MemoryDiskTest, NothingIsLostWhereNothingIsToBeLost) {
  auto file = make("/a");
  ASSERT_TRUE(file->write(0, as_bytes("one")));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(disk_.sync_directory("/"));
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SeededRandom random(seed);
    disk_.crash(random);
    EXPECT_EQ(content("/a"), "one");
  }
}

TEST_F(MemoryDiskTest, AnUnsyncedRenameShowsTheOldOrTheNewFileNeverNone) {
  disk_.put("/d/CURRENT", as_bytes("old"));
  auto file = make("/d/new");
  ASSERT_TRUE(file->write(0, as_bytes("new")));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(disk_.rename("/d/new", "/d/CURRENT"));
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SeededRandom random(seed);
    const auto other = disk_.clone();
    other->crash(random);
    seen.insert(other->content("/d/CURRENT").value_or("(none)"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"old", "new"}));
  ASSERT_TRUE(disk_.sync_directory("/d"));
  disk_.crash(random_, Loss::kEverything);
  EXPECT_EQ(content("/d/CURRENT"), "new");
  EXPECT_FALSE(*disk_.exists("/d/new"));
}

TEST_F(MemoryDiskTest, ARenameBetweenFoldersLeavesOneName) {
  ASSERT_TRUE(disk_.create_directory("/from"));
  ASSERT_TRUE(disk_.create_directory("/to"));
  ASSERT_TRUE(disk_.sync_directory("/"));
  make("/from/a");
  ASSERT_TRUE(disk_.rename("/from/a", "/to/b"));
  ASSERT_TRUE(disk_.sync_directory("/to"));
  disk_.crash(random_, Loss::kNothing);
  EXPECT_TRUE(*disk_.exists("/to/b"));
  EXPECT_FALSE(*disk_.exists("/from/a"));
}

TEST_F(MemoryDiskTest, AnUnsyncedRemovalMayBeUndone) {
  disk_.put("/a", as_bytes("here"));
  ASSERT_TRUE(disk_.remove("/a"));
  const auto undone = disk_.clone();
  undone->crash(random_, Loss::kEverything);
  EXPECT_EQ(*undone->content("/a"), "here");
  ASSERT_TRUE(disk_.sync_directory("/"));
  disk_.crash(random_, Loss::kEverything);
  EXPECT_FALSE(*disk_.exists("/a"));
}

// Each unsynced write alone: whole, not at all, at sector boundaries, at byte boundaries and as mere size all come up,
// and never anything else.
TEST_F(MemoryDiskTest, UnsyncedWritesAreKeptDroppedOrTorn) {
  constexpr size_t kBytes = 2000;
  disk_.put("/a", as_bytes(std::string(1000, 'o')));
  auto file = *disk_.open("/a", OpenMode::kReadWrite);
  ASSERT_TRUE(file->write(100, as_bytes(std::string(kBytes, 'n'))));
  int whole = 0, dropped = 0, sector = 0, byte = 0, size_only = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SeededRandom random(seed);
    const auto other = disk_.clone();
    other->crash(random);
    const Bytes after = *other->content("/a");
    ASSERT_EQ(after.find_first_not_of(std::string("on\0", 3)), std::string::npos);
    ASSERT_EQ(after.substr(0, 100), std::string(100, 'o'));
    const auto kept = std::count(after.begin(), after.end(), 'n');
    const bool prefix = after.substr(100, kept) == std::string(kept, 'n');
    if (kept == kBytes) {
      ++whole;
    } else if (kept == 0) {
      ++(after.size() == 1000 ? dropped : size_only);
    } else if (!prefix || (100 + kept) % 512 == 0) {
      ++sector;
    } else {
      ++byte;
    }
  }
  EXPECT_GT(whole, 50);
  EXPECT_GT(dropped, 50);
  EXPECT_GT(sector, 10);
  EXPECT_GT(byte, 10);
  EXPECT_GT(size_only, 10);
}

TEST_F(MemoryDiskTest, LaterWritesSurviveEarlierOnesInSomeCrashes) {
  disk_.put("/a", as_bytes("--"));
  auto file = *disk_.open("/a", OpenMode::kReadWrite);
  ASSERT_TRUE(file->write(0, as_bytes("1")));
  ASSERT_TRUE(file->write(1, as_bytes("2")));
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SeededRandom random(seed);
    const auto other = disk_.clone();
    other->crash(random);
    seen.insert(*other->content("/a"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"--", "1-", "-2", "12"}));
}

TEST_F(MemoryDiskTest, TheSameSeedGivesTheSameCrash) {
  auto file = make("/a");
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(file->write(i * 700, as_bytes(std::string(700, static_cast<char>('a' + i)))));
  const auto first = disk_.clone();
  const auto second = disk_.clone();
  SeededRandom one(7), two(7);
  first->crash(one);
  second->crash(two);
  EXPECT_EQ(first->content("/a").value_or(""), second->content("/a").value_or(""));
}

TEST_F(MemoryDiskTest, TheCutHitsAnyChangeAndEverythingAfterItFails) {
  const auto run = [](MemoryDisk& disk) -> Status {
    TRY_ASSIGN(auto file, disk.open("/new", OpenMode::kCreate));
    TRY(file->write(0, as_bytes("data")));
    TRY(file->sync());
    TRY(disk.sync_directory("/"));
    TRY(disk.rename("/new", "/final"));
    return disk.sync_directory("/");
  };
  MemoryDisk whole;
  ASSERT_TRUE(run(whole));
  EXPECT_EQ(whole.changes(), 6u);
  for (uint64_t cut = 0; cut < whole.changes(); ++cut) {
    MemoryDisk disk;
    disk.cut_power_at(cut);
    EXPECT_FALSE(run(disk));
    EXPECT_TRUE(disk.power_cut());
    EXPECT_EQ(disk.list("/").error().code, Code::kDataLoss);
    const auto lucky = disk.clone();
    disk.crash(random_, Loss::kEverything);
    EXPECT_EQ(disk.list("/")->size(), cut <= 3 ? 0u : 1u) << cut;
    lucky->crash(random_, Loss::kNothing);
    EXPECT_EQ(lucky->list("/")->size(), 1u) << cut;
    if (cut >= 4) {
      EXPECT_EQ(*lucky->content("/final"), "data");
    }
  }
}

TEST_F(MemoryDiskTest, TheNthCallOnAMatchingPathFails) {
  auto a = make("/a");
  auto b = make("/b");
  disk_.inject({.operation = Operation::kWrite, .nth = 2, .path = "b"});
  EXPECT_TRUE(b->write(0, as_bytes("x")));
  EXPECT_TRUE(a->write(0, as_bytes("x")));
  EXPECT_EQ(b->write(0, as_bytes("y")).error(), (Error{Code::kDataLoss, "/b: write: Input/output error"}));
  EXPECT_TRUE(b->write(0, as_bytes("z")));
  for (const Operation operation : {Operation::kOpen, Operation::kRead, Operation::kRename, Operation::kRemove}) {
    disk_.inject({.operation = operation});
  }
  EXPECT_FALSE(disk_.open("/a", OpenMode::kRead));
  std::byte byte;
  EXPECT_FALSE(a->read(0, {&byte, 1}));
  EXPECT_FALSE(disk_.rename("/a", "/c"));
  EXPECT_FALSE(disk_.remove("/a"));
  EXPECT_EQ(*disk_.list("/"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(disk_.rename("/a", "/c"));
  disk_.inject({.operation = Operation::kExists, .repeat = true});
  EXPECT_FALSE(disk_.exists("/c"));
  EXPECT_FALSE(disk_.exists("/c"));
  disk_.clear_faults();
  EXPECT_TRUE(disk_.exists("/c"));
}

TEST_F(MemoryDiskTest, AFailedWriteMayBeDoneInPart) {
  auto file = make("/a");
  disk_.inject({.operation = Operation::kWrite, .code = Code::kResourceExhausted, .partial_bytes = 2});
  EXPECT_EQ(file->write(0, as_bytes("12345")).error(),
            (Error{Code::kResourceExhausted, "/a: write: No space left on device"}));
  EXPECT_EQ(content("/a"), "12");
}

TEST_F(MemoryDiskTest, WhatAFailedSyncShouldHaveSavedIsLostWhateverIsSyncedLater) {
  auto file = make("/a");
  ASSERT_TRUE(disk_.sync_directory("/"));
  disk_.inject({.operation = Operation::kSync});
  ASSERT_TRUE(file->write(0, as_bytes("1")));
  EXPECT_FALSE(file->sync());
  ASSERT_TRUE(file->write(1, as_bytes("2")));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(content("/a"), "12");
  disk_.crash(random_, Loss::kNothing);
  EXPECT_EQ(content("/a"), std::string("\0002", 2));
}

TEST_F(MemoryDiskTest, CapacityIsOfAllFilesTogether) {
  disk_.set_capacity(10);
  auto a = make("/a");
  auto b = make("/b");
  ASSERT_TRUE(a->write(0, as_bytes("123456")));
  EXPECT_EQ(b->write(0, as_bytes("123456")).error().code, Code::kResourceExhausted);
  EXPECT_EQ(content("/b"), "1234") << "in part";
  EXPECT_EQ(*disk_.free_bytes("/"), 0u);
  EXPECT_TRUE(a->write(2, as_bytes("xxxx"))) << "takes no more space";
  EXPECT_EQ(a->allocate(7).error().code, Code::kResourceExhausted);
  ASSERT_TRUE(disk_.remove("/b"));
  EXPECT_TRUE(a->allocate(10));
  disk_.set_capacity(20);
  EXPECT_EQ(*disk_.free_bytes("/"), 10u);
}

TEST_F(MemoryDiskTest, AFlippedBitIsReadBackAndOutlivesTheCrash) {
  disk_.put("/a", as_bytes("AB"));
  disk_.flip_bit("/a", 9);
  EXPECT_EQ(content("/a"), "A@");
  disk_.crash(random_);
  EXPECT_EQ(content("/a"), "A@");
}

TEST_F(MemoryDiskTest, TheHookRunsBeforeEachCallAndMayCutThePower) {
  std::vector<std::string> seen;
  disk_.set_hook([&](const MemoryDisk::Call& call) {
    seen.push_back(call.path);
    if (call.operation == Operation::kWrite && call.offset == 5) disk_.cut_power();
  });
  auto file = make("/a");
  EXPECT_TRUE(file->write(0, as_bytes("x")));
  EXPECT_FALSE(file->write(5, as_bytes("y")));
  EXPECT_EQ(content("/a"), "x");
  EXPECT_EQ(seen, (std::vector<std::string>{"/a", "/a", "/a"}));
  EXPECT_EQ(disk_.calls(Operation::kWrite), 1u) << "the other did not take place";
  EXPECT_EQ(disk_.calls(), 2u);
}

TEST_F(MemoryDiskTest, ACloneGoesItsOwnWay) {
  auto file = make("/a");
  ASSERT_TRUE(file->write(0, as_bytes("1")));
  ASSERT_TRUE(disk_.sync_directory("/"));
  const auto copy = disk_.clone();
  ASSERT_TRUE(file->write(0, as_bytes("2")));
  EXPECT_EQ(*copy->content("/a"), "1");
  copy->crash(random_, Loss::kEverything);
  EXPECT_EQ(*copy->content("/a"), "") << "unsynced in the copy as well";
  EXPECT_EQ(content("/a"), "2");
}

}  // namespace
