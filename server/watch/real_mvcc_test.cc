// The hub over the real key space: catch-up reads the store's rows while the writer goes on and compaction deletes
// them.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "mvcc/member_test.h"
#include "watch/checker_test.h"

namespace watch {
namespace {

constexpr int kBatches = 2000;
constexpr int64_t kKeep = 150;  // revisions that compaction leaves

class RealMvcc : public ::testing::Test {
 protected:
  void make_hub() {
    hub_ = Hub::make(member_.mvcc(), {.watcher_buffer_bytes = 5000, .response_bytes = 2000, .ring_revisions = 20});
  }

  // As the applier does it: one transaction, some revisions, then published to mvcc and to the hub.
  void apply(std::mt19937& random) {
    std::vector<mvcc::EventBatch> batches;
    const auto published = member_.mvcc().published();
    const bool compact = published.revision - published.compacted > 2 * kKeep;
    auto stage = [&](mvcc::Writer& writer) {
      for (uint32_t n = 1 + random() % 4; n > 0; n--) {
        writer.begin_revision();
        for (char key = 'a'; key < 'e'; key++) {
          const std::string name = std::string(1, key) + std::to_string(random() % 3);
          const uint32_t what = random() % 3;
          if (what == 0) {
            EXPECT_TRUE(writer.put(name, std::string(random() % 80, 'v'), 0, false));
          } else if (what == 1) {
            EXPECT_TRUE(writer.erase(name, "", nullptr, nullptr));
          }
        }
        auto events = writer.end_revision();
        if (!events.events.empty()) batches.push_back(std::move(events));
      }
    };
    ASSERT_TRUE(member_.batch(stage, compact ? published.revision - kKeep : -1));
    history_.insert(history_.end(), batches.begin(), batches.end());
    hub_->publish(std::move(batches), member_.mvcc().published().revision);
    if (compact) hub_->compacted(member_.mvcc().published().compacted);
  }

  // A client on a thread of its own: watches come and go, and it reads at random until the writer is done.
  struct Reader {
    std::shared_ptr<Stream> stream;
    StreamChecker checker;
    std::vector<etcdserverpb::WatchResponse> heard;
  };
  void read(uint32_t seed, Reader* reader) {
    std::mt19937 random(seed);
    while (!written_) {
      if (random() % 50 == 0 && made_[seed] < 40) {
        made_[seed]++;
        etcdserverpb::WatchCreateRequest request;
        request.set_key(std::string(1, static_cast<char>('a' + random() % 4)));
        request.set_range_end("z");
        auto published = member_.mvcc().published();
        if (random() % 3 != 0) {
          auto from = static_cast<int64_t>(random() % static_cast<uint64_t>(published.revision));
          request.set_start_revision(std::max(from, random() % 4 == 0 ? 1 : published.compacted + 20));
        }
        request.set_prev_kv(random() % 2 == 0);
        reader->checker.asked(request);
        reader->stream->create(request);
      }
      for (uint32_t n = random() % 30; n > 0; n--) {
        auto response = reader->stream->take();
        if (response == nullptr) break;
        reader->heard.push_back(response->message);
      }
      turns_++;
      std::this_thread::yield();
    }
  }

  mvcc::Member member_;
  std::unique_ptr<Hub> hub_;
  History history_;
  int made_[3] = {};
  std::atomic<int> turns_{0};  // of all readers
  std::atomic<bool> written_{false};
};

TEST_F(RealMvcc, CatchUpBesideWritesAndCompaction) {
  make_hub();
  std::vector<Reader> readers(3);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < readers.size(); i++) {
    readers[i].stream = hub_->open([] {});
    threads.emplace_back([this, i, &readers] { read(i, &readers[i]); });
  }
  threads.emplace_back([this] {
    while (!written_) {
      if (!hub_->step()) std::this_thread::yield();
    }
  });
  std::mt19937 random(7);
  for (int i = 0; i < kBatches && !HasFatalFailure(); i++) {
    // Not faster than the readers look, or there is nothing beside which they could catch up.
    while (turns_ < 3 * i) std::this_thread::yield();
    apply(random);
    if (i % 3 == 0) member_.compact_step(20);
  }
  written_ = true;
  for (auto& thread : threads) thread.join();
  // Everybody reads to the end, and progress says that it is the end.
  for (auto& reader : readers) reader.stream->progress();
  for (bool more = true; more;) {
    more = hub_->step();
    for (auto& reader : readers) {
      while (auto response = reader.stream->take()) {
        reader.heard.push_back(response->message);
        more = true;
      }
    }
  }
  uint64_t events = 0;
  uint64_t compacted = 0;
  for (auto& reader : readers) {
    for (const auto& response : reader.heard) reader.checker.heard(response, history_);
    reader.checker.finished(member_.mvcc().published().revision, history_);
    events += reader.checker.events;
    compacted += reader.checker.compacted;
    reader.stream->close();
  }
  EXPECT_GT(events, 1000U);
  EXPECT_GT(compacted, 0U);
  EXPECT_EQ(hub_->stats().buffered_bytes, 0U);
}

// What was written before the hub was made is history like any other, also after the store was opened again.
TEST_F(RealMvcc, HistoryOutlivesTheProcess) {
  make_hub();
  std::mt19937 random(3);
  for (int i = 0; i < 30; i++) apply(random);
  hub_.reset();
  member_.reopen();
  make_hub();
  StreamChecker checker;
  auto stream = hub_->open([] {});
  etcdserverpb::WatchCreateRequest request;
  request.set_key("a");
  request.set_range_end("z");
  request.set_start_revision(2);
  checker.asked(request);
  stream->create(request);
  apply(random);
  for (bool more = true; more;) {
    more = hub_->step();
    while (auto response = stream->take()) {
      checker.heard(response->message, history_);
      more = true;
    }
  }
  checker.finished(member_.mvcc().published().revision, history_);
  EXPECT_GT(checker.events, 30U);
  stream->close();
}

}  // namespace
}  // namespace watch
