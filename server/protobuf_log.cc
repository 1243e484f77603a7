#include "protobuf_log.h"

#include <google/protobuf/stubs/logging.h>

#include <atomic>
#include <chrono>
#include <string>

#include "base/log.h"
#include "base/world.h"

namespace {

namespace pb = google::protobuf;

constexpr std::chrono::nanoseconds kPeriod = std::chrono::seconds(30);

// Any thread.
void take(pb::LogLevel level, const char* file, int line, const std::string& message) {
  const std::string where = std::string(file) + ":" + std::to_string(line);
  if (level == pb::LOGLEVEL_FATAL) {  // it ends the process
    return log(LogLevel::kFatal, "protobuf cannot go on", {{"error", message}, {"where", where}});
  }
  static std::atomic<int64_t> next{0};
  static std::atomic<uint64_t> left_out{0};
  const int64_t now = real_world().clock.monotonic().count();
  int64_t due = next.load();
  if (now < due || !next.compare_exchange_strong(due, now + kPeriod.count())) {
    left_out.fetch_add(1);
    return;
  }
  log(level == pb::LOGLEVEL_INFO ? LogLevel::kInfo : LogLevel::kWarn, "protobuf has a remark on a message",
      {{"error", message}, {"where", where}, {"left_out", left_out.exchange(0)}});
}

}  // namespace

void log_for_protobuf() { pb::SetLogHandler(&take); }
