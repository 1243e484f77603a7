// history_check FILE...: checks recorded histories (record.proto, one JSON object a line). Exit code 0: sound, 1: not,
// 2: not readable.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "history/record_file.h"

namespace {

constexpr const char* kUsage =
    "usage: history_check [--late-max SECONDS] [--unknown-within SECONDS] [--watches-complete] FILE...\n"
    "  --late-max SECONDS        how much later than its time a lease may end (default 2)\n"
    "  --unknown-within SECONDS  a request without an answer may still happen so long after its call (default 10)\n"
    "  --watches-complete        the watches together heard everything that happened to all keys\n";

int check(const char* path, const history::CheckOptions& options) {
  std::ifstream in(path);
  if (!in) {
    std::fprintf(stderr, "%s: cannot be read\n", path);
    return 2;
  }
  auto record = history::read_record(in);
  if (!record) {
    std::fprintf(stderr, "%s: %s\n", path, record.error().message.c_str());
    return 2;
  }
  std::string undecided;
  const auto faults = history::check_all(*record, options, &undecided);
  for (const std::string& fault : faults) std::printf("%s: %s\n", path, fault.c_str());
  if (!undecided.empty()) std::printf("%s: undecided: %s", path, undecided.c_str());
  std::printf("%s: %zu operations, %zu watches, %zu lease calls, %zu lock holds: %s\n", path, record->operations.size(),
              record->watches.size(), record->lease_calls.size(), record->holds.size(),
              faults.empty() ? "sound" : "not sound");
  return faults.empty() ? 0 : 1;
}

bool number_of(int argc, char** argv, int& i, history::Time& into) {
  if (i + 1 >= argc) return false;
  char* end = nullptr;
  const double seconds = std::strtod(argv[++i], &end);
  into = history::Time(static_cast<int64_t>(seconds * 1e9));
  return *end == '\0' && end != argv[i] && seconds >= 0;
}

}  // namespace

int main(int argc, char** argv) {
  history::CheckOptions options{
      .leases = {.late_max = std::chrono::seconds(2), .unknown_within = std::chrono::seconds(10)}};
  int worst = -1;
  for (int i = 1; i < argc; ++i) {
    bool good = true;
    if (std::strcmp(argv[i], "--late-max") == 0) {
      good = number_of(argc, argv, i, options.leases.late_max);
    } else if (std::strcmp(argv[i], "--unknown-within") == 0) {
      good = number_of(argc, argv, i, options.leases.unknown_within);
    } else if (std::strcmp(argv[i], "--watches-complete") == 0) {
      options.watches_complete = true;
    } else if (argv[i][0] == '-') {
      good = false;
    } else {
      worst = std::max(worst, check(argv[i], options));
    }
    if (!good) {
      std::fputs(kUsage, stderr);
      return 2;
    }
  }
  if (worst < 0) std::fputs(kUsage, stderr);
  return worst < 0 ? 2 : worst;
}
