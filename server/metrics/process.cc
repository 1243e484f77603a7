// process_*: what Prometheus' own client libraries say of every process, read from /proc at a scrape.
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <string>

#include "metrics/registry.h"

namespace metrics {
namespace {

// Pages: total, resident. Zeros when /proc is not to be had.
struct Memory {
  double virtual_bytes = 0;
  double resident_bytes = 0;
};
Memory memory() {
  Memory out;
  if (FILE* file = std::fopen("/proc/self/statm", "re")) {
    unsigned long total = 0;
    unsigned long resident = 0;
    if (std::fscanf(file, "%lu %lu", &total, &resident) == 2) {
      const double page = static_cast<double>(sysconf(_SC_PAGESIZE));
      out = {static_cast<double>(total) * page, static_cast<double>(resident) * page};
    }
    std::fclose(file);
  }
  return out;
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double open_descriptors() {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  int count = -1;  // the one that opendir holds
  while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

double descriptors_max() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<double>(limit.rlim_cur);
}

}  // namespace

void Registry::add_process_metrics() {
  const double start = static_cast<double>(time(nullptr));
  gauge("process_resident_memory_bytes", "Resident memory size in bytes.", [] { return memory().resident_bytes; });
  gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", [] { return memory().virtual_bytes; });
  counter_from("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", cpu_seconds);
  gauge("process_open_fds", "Number of open file descriptors.", open_descriptors);
  gauge("process_max_fds", "Maximum number of open file descriptors.", descriptors_max);
  gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.",
        [start] { return start; });
}

}  // namespace metrics
