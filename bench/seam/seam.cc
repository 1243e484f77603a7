// The seam's gates, measured: how log, store and key space behave together under load, without a network in between.
//
//   seam load  [--seconds 300] [--rate 20000] [--keys 200000] [--readers 2]   puts at a fixed rate beside readers, with
//              compaction; latency of each put from proposal to answer, size of the -wal, memory
//   seam reads [--seconds 10] [--keys 200000]      point reads on one thread: uncached, then hot ones, nothing else
//   running seam size  [--keys 200000]                     memory with so many keys of 256 bytes, and time to open
//   after SIGKILL
//
// Each uses a folder of its own below $TMPDIR and removes it.
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/thread.h"
#include "base/world.h"
#include "member/member.h"

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

struct Settings {
  int seconds = 0;
  int rate = 20'000;
  int keys = 200'000;
  int readers = 2;
};

constexpr size_t kValueBytes = 256;
constexpr int kReadsPerView = 32;  // as an io thread serves what is ready in one wake-up

std::string key_of(int number) {
  char text[32];
  std::snprintf(text, sizeof text, "key/%08d", number);
  return text;
}

double rss_mib() {
  long total = 0;
  long resident = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE)) / (1 << 20);
}

class Folder {
 public:
  Folder() {
    const char* base = std::getenv("TMPDIR");
    std::string pattern = std::string(base != nullptr ? base : "/tmp") + "/seam-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::unique_ptr<member::Member> open_member(const std::string& folder, metrics::Registry& metrics) {
  member::Options options;
  options.data_dir = folder + "/data";
  options.peer_urls = {"http://127.0.0.1:2380"};
  options.client_urls = {"http://127.0.0.1:2379"};
  options.quota_bytes = 16LL << 30;
  auto member = member::Member::open(real_world(), options, metrics, {.on_failure = [](const Error& error) {
                                       std::fprintf(stderr, "the member stopped: %s\n", error.message.c_str());
                                       std::exit(1);
                                     }});
  if (!member) {
    std::fprintf(stderr, "%s\n", member.error().message.c_str());
    std::exit(1);
  }
  (*member)->start();
  while (!(*member)->linearizable_now()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return std::move(*member);
}

void check(const Result<apply::Message>& done) {
  if (done) return;
  std::fprintf(stderr, "refused: %s\n", done.error().message.c_str());
  std::exit(1);
}

void put(member::Member& member, int number, const std::string& value, member::Done done) {
  conclavepb::Entry command;
  command.mutable_put()->set_key(key_of(number));
  command.mutable_put()->set_value(value);
  member.propose(std::move(command), std::move(done));
}

void fill(member::Member& member, int keys) {
  const std::string value(kValueBytes, 'x');
  std::atomic<int> waiting{0};
  for (int i = 0; i < keys; ++i) {
    while (waiting.load() > 1000) std::this_thread::sleep_for(std::chrono::microseconds(200));
    ++waiting;
    put(member, i, value, [&waiting](const Result<apply::Message>& done) {
      check(done);
      --waiting;
    });
  }
  while (waiting.load() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// The driver stands for clients on other machines, so that its own wait for a processor is not counted.
class FirstInLine {
 public:
  FirstInLine() {
    hurry_thread();
    (void)setpriority(PRIO_PROCESS, 0, -15);
  }
  ~FirstInLine() { (void)setpriority(PRIO_PROCESS, 0, 0); }
};

// Point reads of keys below `keys` until `stop`; how many a second.
double read_points(member::Member& member, int keys, const std::function<bool()>& stop, uint64_t seed) {
  uint64_t state = seed * 2862933555777941757ULL + 3037000493ULL;
  uint64_t reads = 0;
  const auto begin = Clock::now();
  while (!stop()) {
    const auto reader = member.reader();
    for (int i = 0; i < kReadsPerView; ++i, ++reads) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      const auto got = reader->get(key_of(static_cast<int>((state >> 33) % static_cast<uint64_t>(keys))), 0);
      if (!got || !*got) {
        std::fprintf(stderr, "a key is missing: %s\n", got ? "absent" : got.error().message.c_str());
        std::exit(1);
      }
    }
  }
  return static_cast<double>(reads) / Seconds(Clock::now() - begin).count();
}

double percentile(std::vector<float>& sorted, double share) {
  return sorted.empty()
             ? 0
             : sorted[std::min(sorted.size() - 1, static_cast<size_t>(share * static_cast<double>(sorted.size())))];
}

int load(const Settings& settings) {
  const Folder folder;
  metrics::Registry metrics;
  const auto member = open_member(folder.path(), metrics);
  fill(*member, settings.keys);
  std::printf("filled with %d keys: rss %.0f MiB\n", settings.keys, rss_mib());

  const std::string value(kValueBytes, 'y');
  const int seconds = settings.seconds > 0 ? settings.seconds : 300;
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  std::vector<double> rates(static_cast<size_t>(settings.readers));
  for (int r = 0; r < settings.readers; ++r) {
    readers.emplace_back([&, r] {
      rates[static_cast<size_t>(r)] = read_points(
          *member, settings.keys, [&stop] { return stop.load(); }, static_cast<uint64_t>(r) + 1);
    });
  }
  const FirstInLine first;  // after the readers began: threads inherit it
  const auto total = static_cast<size_t>(settings.rate) * static_cast<size_t>(seconds);
  std::vector<float> took(total);  // milliseconds
  std::atomic<size_t> answered{0};
  uint64_t wal_most = 0;
  double rss_begin = 0;
  double rss_most = 0;
  const auto begin = Clock::now();
  auto next_look = begin;
  int64_t compacted = 0;
  for (size_t i = 0; i < total; ++i) {
    const auto due = begin + std::chrono::nanoseconds(i * 1'000'000'000ULL / static_cast<uint64_t>(settings.rate));
    if (auto now = Clock::now(); due > now + std::chrono::milliseconds(1)) std::this_thread::sleep_until(due);
    // From when it was due: a driver that was held up must not hide the wait.
    put(*member, static_cast<int>((i * 7919) % static_cast<size_t>(settings.keys)), value,
        [&took, &answered, i, due](const Result<apply::Message>& done) {
          check(done);
          took[i] = static_cast<float>(Seconds(Clock::now() - due).count() * 1e3);
          ++answered;
        });
    if (Clock::now() < next_look) continue;
    next_look += std::chrono::seconds(1);
    const auto state = member->state();
    wal_most = std::max(wal_most, state.store.wal_bytes);
    const double rss = rss_mib();
    if (rss_begin == 0 && Clock::now() > begin + std::chrono::seconds(std::min(30, seconds / 4))) rss_begin = rss;
    rss_most = std::max(rss_most, rss);
    const auto past = static_cast<int>(Seconds(Clock::now() - begin).count());
    if (past % 10 == 0) {
      std::printf("%4d s: rss %.0f MiB, -wal %.1f MiB, database %.0f MiB, waiting %zu\n", past, rss,
                  static_cast<double>(state.store.wal_bytes) / (1 << 20),
                  static_cast<double>(state.store.size_bytes) / (1 << 20), i + 1 - answered.load());
      std::fflush(stdout);
    }
    if (past % 5 == 0 && state.published.revision - 100'000 > compacted) {
      compacted = state.published.revision - 100'000;
      conclavepb::Entry command;
      command.mutable_compaction()->set_revision(compacted);
      member->propose(std::move(command), check);
    }
  }
  while (answered.load() < total) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const double elapsed = Seconds(Clock::now() - begin).count();
  stop = true;
  for (auto& reader : readers) reader.join();
  const size_t most_at = static_cast<size_t>(std::max_element(took.begin(), took.end()) - took.begin());
  std::sort(took.begin(), took.end());
  std::printf("puts/s %.0f; commit ms: p50 %.2f p99 %.2f p99.9 %.2f max %.1f (at %.1f s)\n",
              static_cast<double>(total) / elapsed, percentile(took, 0.5), percentile(took, 0.99),
              percentile(took, 0.999), static_cast<double>(took.back()), static_cast<double>(most_at) / settings.rate);
  for (size_t r = 0; r < rates.size(); ++r) std::printf("reader %zu: %.0f reads/s\n", r + 1, rates[r]);
  std::printf("-wal at most %.1f MiB; rss after warm-up %.0f MiB, at most %.0f MiB, at the end %.0f MiB\n",
              static_cast<double>(wal_most) / (1 << 20), rss_begin, rss_most, rss_mib());
  for (const char* name : {"conclave_store_pause_duration_seconds", "etcd_disk_backend_commit_duration_seconds",
                           "etcd_disk_wal_fsync_duration_seconds"}) {
    std::istringstream lines(metrics.text());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(name)) std::printf("%s\n", line.c_str());
    }
  }
  member->stop();
  return 0;
}

int reads(const Settings& settings) {
  const Folder folder;
  metrics::Registry metrics;
  const auto member = open_member(folder.path(), metrics);
  fill(*member, settings.keys);
  const auto until = [&settings](Clock::time_point begin) {
    return [begin, seconds = settings.seconds > 0 ? settings.seconds : 10] {
      return Clock::now() > begin + std::chrono::seconds(seconds);
    };
  };
  std::printf("point reads of %d keys: %.0f/s\n", settings.keys,
              read_points(*member, settings.keys, until(Clock::now()), 1));
  std::printf("point reads of 1,000 hot keys: %.0f/s\n", read_points(*member, 1'000, until(Clock::now()), 2));
  member->stop();
  return 0;
}

int size(const Settings& settings) {
  const Folder folder;
  const pid_t child = fork();
  if (child == 0) {
    metrics::Registry metrics;
    const auto member = open_member(folder.path(), metrics);
    fill(*member, settings.keys);
    std::printf("%d keys of %zu bytes, just written: rss %.0f MiB\n", settings.keys, kValueBytes, rss_mib());
    std::fflush(stdout);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  metrics::Registry metrics;
  const auto begin = Clock::now();
  const auto member = open_member(folder.path(), metrics);
  std::printf("open after SIGKILL: %.0f ms until it leads; rss %.0f MiB\n", Seconds(Clock::now() - begin).count() * 1e3,
              rss_mib());
  if (member->state().keys != settings.keys) {
    std::fprintf(stderr, "%lld keys are there\n", static_cast<long long>(member->state().keys));
    return 1;
  }
  member->stop();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  const std::string what = argc > 1 ? argv[1] : "";
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    int* const value = flag == "--seconds"   ? &settings.seconds
                       : flag == "--rate"    ? &settings.rate
                       : flag == "--keys"    ? &settings.keys
                       : flag == "--readers" ? &settings.readers
                                             : nullptr;
    if (value == nullptr) {
      std::fprintf(stderr, "seam: unknown option %s\n", argv[i]);
      return 2;
    }
    *value = std::atoi(argv[i + 1]);
  }
  if (what == "load") return load(settings);
  if (what == "reads") return reads(settings);
  if (what == "size") return size(settings);
  std::fprintf(stderr, "usage: seam load|reads|size [--seconds N] [--rate N] [--keys N] [--readers N]\n");
  return 2;
}
