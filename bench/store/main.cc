// What the store alone can do, against the goals of docs/format-store.md: point reads on one thread, idle and beside
// 1,000 commits/s of 20 puts with checkpoints; a scan of all heads; commits of 64 rows; opening after a kill.
//
//   build/bench/bench_store [FOLDER]     a folder on the disk to be measured; default: the system's temporary one
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/check.h"
#include "base/memory_disk.h"
#include "store/store.h"

namespace {

using Time = std::chrono::steady_clock;

constexpr int kRows = 200'000;
constexpr size_t kValueBytes = 256;
constexpr int kReadsPerTxn = 32;

double seconds_since(Time::time_point begin) { return std::chrono::duration<double>(Time::now() - begin).count(); }

template <class T>
T must(Result<T> result) {
  CHECK(result, result ? "" : result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

long resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") {
      long kib = 0;
      status >> kib;
      return kib;
    }
  }
  return 0;
}

void print_latencies(const char* what, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double share) { return 1e3 * seconds[static_cast<size_t>(share * (seconds.size() - 1))]; };
  std::printf("%s: p50 %.3f ms, p99 %.3f ms, p99.9 %.3f ms, max %.3f ms\n", what, at(0.5), at(0.99), at(0.999), at(1));
}

class Bench {
 public:
  explicit Bench(std::string folder) : folder_(std::move(folder)) { open(); }

  void open() {
    const auto begin = Time::now();
    store_ = must(store::Store::open(real_disk(), {.directory = folder_}, mark_));
    std::printf("open: %.1f ms (-wal %.1f MiB)\n", 1e3 * seconds_since(begin), store_->stats().wal_bytes / 1048576.0);
  }
  void close() { store_.reset(); }

  void commit(int rows) {
    auto txn = must(store_->begin());
    for (int i = 0; i < rows; ++i) {
      const auto id = ++last_;
      const std::string key = "/registry/services/" + std::to_string(id % kRows);
      must(txn->put_row({.id = id, .key = key, .create_revision = id, .version = 1, .value = value_}));
    }
    store::Meta meta = store_->meta();
    ++meta.applied_index;
    meta.revision = last_ + 1;
    must(txn->set_meta(meta));
    must(txn->commit());
  }

  void checkpoint() {
    const auto begun = must(store_->begin_checkpoint());
    if (begun) mark_ = must(store_->run_checkpoint());
    store_->end_checkpoint();
  }

  void load() {
    const auto begin = Time::now();
    for (int i = 0; i < kRows; i += 500) {
      commit(500);
      if (store_->pause_needed()) checkpoint();
    }
    checkpoint();
    std::printf("load of %d rows: %.2f s, %.1f MiB, resident %ld MiB\n", kRows, seconds_since(begin),
                store_->stats().size_bytes / 1048576.0, resident_kib() / 1024);
  }

  double reads_per_second(double seconds) {
    SeededRandom random(1);
    int64_t reads = 0;
    const auto begin = Time::now();
    while (seconds_since(begin) < seconds) {
      auto txn = must(store_->read());
      for (int i = 0; i < kReadsPerTxn; ++i) {
        const auto row = must(txn->row(1 + static_cast<int64_t>(random.below(kRows))));
        CHECK(row && row->value.size() == kValueBytes);
      }
      reads += kReadsPerTxn;
    }
    return static_cast<double>(reads) / seconds_since(begin);
  }

  void scan(bool heads_only) {
    const auto begin = Time::now();
    int64_t rows = 0;
    auto txn = must(store_->read());
    must(txn->scan(0, kRows + 1, heads_only, [&](const store::RowView& row) {
      rows += row.key.empty() ? 0 : 1;
      return true;
    }));
    std::printf("scan of %ld %s: %.1f ms\n", rows, heads_only ? "heads" : "rows", 1e3 * seconds_since(begin));
  }

  // Reads on this thread; `commits_per_second` of 20 puts on another, passive checkpoints on a third.
  void reads_under_load(int commits_per_second, double seconds) {
    std::atomic<bool> done{false};
    std::atomic<bool> pause{false}, paused{false};
    std::vector<double> latencies;
    uint64_t wal_bytes_max = 0;
    std::thread writer([&] {
      auto next = Time::now();
      while (!done) {
        if (pause || store_->pause_needed()) {
          paused = true;
          while (paused && !done) std::this_thread::yield();
        }
        const auto begin = Time::now();
        commit(20);
        latencies.push_back(seconds_since(begin));
        wal_bytes_max = std::max(wal_bytes_max, store_->stats().wal_bytes);
        next += std::chrono::nanoseconds(1'000'000'000 / commits_per_second);
        std::this_thread::sleep_until(next);
      }
    });
    double longest_pause = 0;
    std::thread checkpointer([&] {
      while (!done) {
        if (!paused && store_->stats().wal_bytes < (16 << 20)) {
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
          continue;
        }
        if (!paused) checkpoint();
        pause = true;
        while (!paused && !done) std::this_thread::sleep_for(std::chrono::microseconds(100));
        const auto begin = Time::now();
        checkpoint();
        longest_pause = std::max(longest_pause, seconds_since(begin));
        pause = false;
        paused = false;
      }
    });
    const double rate = reads_per_second(seconds);
    done = true;
    writer.join();
    checkpointer.join();
    std::printf("point reads beside %d commits/s (did %.0f): %.0f/s; -wal at most %.1f MiB, longest pause %.1f ms\n",
                commits_per_second, static_cast<double>(latencies.size()) / seconds, rate, wal_bytes_max / 1048576.0,
                1e3 * longest_pause);
    print_latencies("  commits of 20 rows", latencies);
  }

  void commits(int rows, int count) {
    std::vector<double> latencies;
    double longest_checkpoint = 0;
    for (int i = 0; i < count; ++i) {
      const auto begin = Time::now();
      commit(rows);
      latencies.push_back(seconds_since(begin));
      if (store_->pause_needed()) {
        const auto pause = Time::now();
        checkpoint();
        longest_checkpoint = std::max(longest_checkpoint, seconds_since(pause));
      }
    }
    std::printf("checkpoint of a whole -wal: %.1f ms\n", 1e3 * longest_checkpoint);
    print_latencies(("commits of " + std::to_string(rows) + " rows").c_str(), latencies);
  }

 private:
  const std::string folder_;
  const std::string value_ = std::string(kValueBytes, 'v');
  std::unique_ptr<store::Store> store_;
  std::optional<store::Mark> mark_;
  int64_t last_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  std::string folder = std::string(argc > 1 ? argv[1] : std::filesystem::temp_directory_path().c_str());
  folder += "/bench_store." + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  {
    Bench bench(folder);
    bench.load();
    std::printf("point reads, idle: %.0f/s\n", bench.reads_per_second(2));
    bench.scan(true);
    bench.scan(false);
    bench.commits(64, 3000);
    bench.reads_under_load(1000, 5);
    bench.close();
    bench.open();
    std::printf("resident: %ld MiB\n", resident_kib() / 1024);
  }
  std::filesystem::remove_all(folder);
  return 0;
}
