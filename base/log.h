// One logger a process (spdlog behind it). Messages speak to an operator: what happened, to which member or key, what
// to do. Key=value pairs make the JSON format searchable:
//
//   log_warn("a write to the log took long", {{"took_ms", took}, {"file", path}});
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.h"

enum class LogLevel { kDebug, kInfo, kWarn, kError, kPanic, kFatal };

struct LogField {
  template <class Value>
  LogField(std::string_view name, const Value& value) : name(name) {
    if constexpr (std::is_same_v<Value, bool>) {
      text = value ? "true" : "false";
      boolean = true;
    } else if constexpr (std::is_arithmetic_v<Value>) {
      text = std::to_string(value);
      number = true;
    } else {
      text = std::string(value);
    }
  }
  std::string_view name;
  std::string text;
  bool number = false;
  bool boolean = false;
};

void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});
inline void log_debug(std::string_view m, std::initializer_list<LogField> f = {}) { log(LogLevel::kDebug, m, f); }
inline void log_info(std::string_view m, std::initializer_list<LogField> f = {}) { log(LogLevel::kInfo, m, f); }
inline void log_warn(std::string_view m, std::initializer_list<LogField> f = {}) { log(LogLevel::kWarn, m, f); }
inline void log_error(std::string_view m, std::initializer_list<LogField> f = {}) { log(LogLevel::kError, m, f); }

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  bool json = true;                // else console
  std::string outputs = "stderr";  // comma separated: stderr, stdout, or a file's path (appended to)
};
// Before that, everything goes to stderr as console lines from `kWarn` on. Call once, before threads start. Fails, and
// leaves everything as it was, when a file cannot be opened.
Status open_log(const LogOptions& options);
