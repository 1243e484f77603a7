// Real threads, for ThreadSanitizer: an applier, a catch-up thread, readers that come, go and resume.
#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "watch/checker_test.h"
#include "watch/fixture_test.h"

namespace watch {
namespace {

constexpr int kReaders = 4;
constexpr int kWrites = 3000;

// What the readers wait on: a wake-up of their stream.
class Signal {
 public:
  void raise() {
    MutexLock lock(mutex_);
    raised_ = true;
    condition_.notify_one();
  }
  void wait() {
    MutexLock lock(mutex_);
    while (!raised_) condition_.wait(mutex_);
    raised_ = false;
  }

 private:
  Mutex mutex_;
  Condition condition_;
  bool raised_ GUARDED_BY(mutex_) = false;
};

class Threads : public Fixture {
 protected:
  // One life of a reader: some watches, read until the last write was seen (a progress answer says so) or until it has
  // enough of it. Everything is checked afterwards, when the whole history is known.
  struct Life {
    StreamChecker checker;
    std::vector<etcdserverpb::WatchResponse> heard;
  };

  void live(uint32_t seed, Signal& signal, bool to_the_end, Life* life) {
    std::mt19937 random(seed);
    auto stream = hub->open([&] { signal.raise(); });
    for (int i = 0; i < 5; i++) {
      Request request;
      request.set_key(std::string(1, static_cast<char>('a' + random() % 4)));
      if (random() % 2 == 0) request.set_range_end("z");
      int64_t now = mvcc.published().revision;
      auto start = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(now + 3));
      if (random() % 2 == 0) request.set_start_revision(std::min<int64_t>(start, kWrites + 1));
      request.set_prev_kv(random() % 2 == 0);
      life->checker.asked(request);
      stream->create(request);
    }
    stream->cancel(static_cast<int64_t>(random() % 6));
    size_t enough = random() % 300;
    bool last_asked = false;
    for (;;) {
      auto response = stream->take();
      if (response != nullptr) {
        life->heard.push_back(response->message);
        bool progress = response->message.watch_id() == -1 && !response->message.created();
        if (progress && response->message.header().revision() == kWrites + 1) break;
        if (!to_the_end && life->heard.size() > enough) break;
        continue;
      }
      if (written_ && !last_asked) {
        last_asked = true;
        stream->progress();
        continue;
      }
      signal.wait();
    }
    stream->close();
  }

  std::atomic<bool> written_{false};
  std::array<Signal, kReaders> signals_;
  Signal behind_;
  std::atomic<bool> stop_{false};
};

TEST_F(Threads, ReadersHearEverythingWhateverTheOthersDo) {
  start({.watcher_buffer_bytes = 2000, .stream_buffer_bytes = 6000, .response_bytes = 1000, .ring_revisions = 100});
  hub->set_on_work([this] { behind_.raise(); });
  std::vector<std::vector<std::unique_ptr<Life>>> lives(kReaders);
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    while (!stop_) {
      if (!hub->step()) behind_.wait();
    }
  });
  // Wakes everybody from time to time with periodic progress, and is a second caller of tick and stats.
  std::atomic<bool> ticking{true};
  threads.emplace_back([&] {
    for (int64_t i = 0; ticking; i++) {
      hub->tick(std::chrono::milliseconds(i));
      EXPECT_LE(hub->stats().behind, hub->stats().streams * 5 + 5 * kReaders);
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> readers;
  for (uint32_t r = 0; r < kReaders; r++) {
    readers.emplace_back([&, r] {
      for (uint32_t turn = 0; !written_; turn++) {
        lives[r].push_back(std::make_unique<Life>());
        live(r * 1000 + turn, signals_[r], false, lives[r].back().get());
      }
      lives[r].push_back(std::make_unique<Life>());
      live(r * 1000 + 999, signals_[r], true, lives[r].back().get());
    });
  }
  Client everything(*hub);  // never read while the others run: must not hold up anybody
  everything.watch("a", "z");
  std::mt19937 random(1);
  for (int i = 0; i < kWrites; i++) {
    std::vector<Write> writes;
    for (char key = 'a'; key < 'e'; key++) {
      if (random() % 2 == 0) writes.push_back({std::string(1, key), std::string(random() % 50, 'v')});
    }
    if (writes.empty()) writes.push_back({"a", ""});
    auto batch = mvcc.write(writes);
    int64_t revision = batch.revision;
    if (i == kWrites - 1) written_ = true;
    hub->publish({std::move(batch)}, revision);
  }
  // Those who wait for an event that will not come: one more look.
  for (auto& signal : signals_) signal.raise();
  ticking = false;
  for (auto& reader : readers) reader.join();
  stop_ = true;
  behind_.raise();
  for (auto& thread : threads) thread.join();

  auto history = mvcc.all();
  uint64_t events = 0;
  for (auto& reader : lives) {
    for (auto& life : reader) {
      for (const auto& response : life->heard) life->checker.heard(response, history);
      events += life->checker.events;
    }
    reader.back()->checker.finished(kWrites + 1, history);
  }
  EXPECT_GT(events, 1000U);
}

}  // namespace
}  // namespace watch
