// What a snapshot costs: making one idle and beside commits (and what those commits feel of it), and installing it.
//
//   build/bench/bench_snapshot [FOLDER [MB]]     a folder on the disk to be measured, the amount of values (1000 MB)
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/world.h"
#include "member/snapshot_install.h"
#include "member/snapshot_make.h"
#include "mvcc/content_hash.h"
#include "mvcc/revision.h"

namespace {

constexpr size_t kValueBytes = 1000;
constexpr int kRowsPerCommit = 20;

template <class T>
T must(Result<T> result) {
  CHECK(result, result ? "" : result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

class Bench {
 public:
  Bench(std::string folder, int64_t rows) : rows_(rows) {
    options_.data_dir = std::move(folder);
    must(member::create_folder(disk(), member::store_folder(options_, {})));
    store_ = must(store::Store::open(disk(), member::store_options(options_, {}), std::nullopt));
    meta_.applied_index = meta_.applied_term = 1;
  }

  void fill() {
    const auto began = now();
    for (int64_t i = 0; i < rows_; i += 2000) commit(2000);
    report("filled", began, bytes());
    must(checkpoint());
  }

  member::SnapshotInfo make(const char* what) {
    member::Failure failure;
    member::SnapshotMaker maker({.clock = real_world().clock,
                                 .failure = failure,
                                 .disk = disk(),
                                 .store = *store_,
                                 .data_dir = options_.data_dir,
                                 .cluster_id = 1,
                                 .hold_compaction = [](bool) {},
                                 .send = [](uint64_t, Bytes) { return true; }});
    std::optional<member::SnapshotInfo> made;
    const auto began = now();
    double longest = 0;
    maker.ask(index_min_, [&](Result<member::SnapshotInfo> info) { made = must(std::move(info)); });
    while (!made) {
      const auto step_began = now();
      const member::Time next = maker.step();
      longest = std::max(longest, seconds_since(step_began));
      const member::Time wait = next == member::kNow ? member::Time{} : next - now();
      if (wait > member::Time{} && !made) usleep(static_cast<useconds_t>(wait.count() / 1000));
    }
    report(what, began, made->bytes);
    std::printf("  longest step %.1f ms\n", longest * 1e3);
    return *made;
  }

  void make_beside_commits() {
    index_min_ = store_->meta().applied_index + 1;
    commit(kRowsPerCommit);
    std::atomic<bool> stop{false};
    std::vector<double> quiet;
    std::vector<double> seconds;
    std::vector<double>* into = &quiet;
    const auto commit_for_a_while = [&](auto until) {
      while (!until()) {
        const auto began = now();
        commit(kRowsPerCommit);
        into->push_back(seconds_since(began));
        usleep(500);
      }
    };
    const auto began = now();
    commit_for_a_while([&] { return seconds_since(began) > 5; });
    into = &seconds;
    std::thread writer([&] { commit_for_a_while([&] { return stop.load(); }); });
    make("made beside commits");
    stop = true;
    writer.join();
    print("  commits without: ", quiet);
    print("  commits beside:  ", seconds);
  }

  void install(const member::SnapshotInfo& made) {
    const auto began = now();
    double longest = 0;
    auto install =
        must(member::SnapshotInstall::begin(disk(), options_, member::snapshot_path(options_.data_dir, made.at), 1));
    for (bool more = true; more;) {
      const auto step_began = now();
      more = must(install->step());
      longest = std::max(longest, seconds_since(step_began));
    }
    report("installed", began, made.bytes);
    std::printf("  longest step %.1f ms\n", longest * 1e3);
  }

 private:
  static Disk& disk() { return real_world().disk; }
  static std::chrono::nanoseconds now() { return real_world().clock.monotonic(); }
  static double seconds_since(std::chrono::nanoseconds began) {
    return std::chrono::duration<double>(now() - began).count();
  }
  static void report(const char* what, std::chrono::nanoseconds began, uint64_t bytes) {
    const double seconds = seconds_since(began);
    std::printf("%s: %.2f s, %.0f MB/s\n", what, seconds, static_cast<double>(bytes) / 1e6 / seconds);
  }
  static void print(const char* what, std::vector<double>& seconds) {
    std::sort(seconds.begin(), seconds.end());
    const auto at = [&](double share) {
      return 1e3 * seconds[static_cast<size_t>(share * static_cast<double>(seconds.size() - 1))];
    };
    std::printf("%s%zu, p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms, max %.2f ms\n", what, seconds.size(), at(0.5),
                at(0.99), at(0.999), at(1));
  }
  uint64_t bytes() const { return static_cast<uint64_t>(rows_) * kValueBytes; }

  Status checkpoint() {
    TRY_ASSIGN(const auto begun, store_->begin_checkpoint());
    if (begun) must(store_->run_checkpoint());
    store_->end_checkpoint();
    return {};
  }
  void commit(int rows) {
    if (store_->pause_needed()) must(checkpoint());
    auto txn = must(store_->begin());
    Bytes value(kValueBytes, '\0');
    for (int i = 0; i < rows; ++i) {
      const int64_t revision = ++meta_.revision;
      const std::string key = "bench/key/" + std::to_string(revision);
      for (size_t at = 0; at + 8 <= value.size(); at += 8) {
        const uint64_t word = static_cast<uint64_t>(revision) * 0x9e3779b97f4a7c15 + at;
        value.replace(at, 8, reinterpret_cast<const char*>(&word), 8);
      }
      must(txn->put_row(
          {.id = mvcc::row_id({revision, 0}), .key = key, .create_revision = revision, .version = 1, .value = value}));
      meta_.content_hash += mvcc::content_hash_of(key, value, revision, revision, 1, 0);
    }
    ++meta_.applied_index;
    must(txn->set_meta(meta_));
    must(txn->commit());
  }

  const int64_t rows_;
  member::Options options_;
  std::unique_ptr<store::Store> store_;
  store::Meta meta_;
  uint64_t index_min_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string above = argc > 1 ? argv[1] : std::filesystem::temp_directory_path().string();
  const std::string folder = above + "/bench_snapshot." + std::to_string(getpid());
  const int64_t megabytes = argc > 2 ? std::stoll(argv[2]) : 1000;
  {
    Bench bench(folder, megabytes * 1000);
    bench.fill();
    const member::SnapshotInfo made = bench.make("made, idle");
    bench.install(made);
    bench.make_beside_commits();
  }
  std::filesystem::remove_all(folder);
  return 0;
}
