// The process's logger. spdlog gives sinks, levels and their locking; the two line formats are made here, because its
// own pattern language knows no escaped JSON and no fields.
#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <memory>
#include <vector>

namespace {

constexpr std::array<std::string_view, 6> kLevelNames = {"debug", "info", "warn", "error", "panic", "fatal"};
constexpr std::array<spdlog::level::level_enum, 6> kSpdlogLevels = {spdlog::level::debug,    spdlog::level::info,
                                                                    spdlog::level::warn,     spdlog::level::err,
                                                                    spdlog::level::critical, spdlog::level::critical};

struct Logger {
  LogLevel level = LogLevel::kWarn;
  bool json = false;
  spdlog::logger sinks{"conclave", std::make_shared<spdlog::sinks::stderr_sink_mt>()};

  explicit Logger() { pass_lines_through(); }
  void pass_lines_through() {
    sinks.set_level(spdlog::level::trace);  // `level` above decides: panic and fatal share one level of spdlog's
    sinks.set_pattern("%v");
    sinks.flush_on(spdlog::level::trace);  // a crash must not eat the line that explains it
  }
};

Logger& logger() {
  static Logger instance;
  return instance;
}

// Length of the well-formed UTF-8 sequence at the start of `text`, 0 if there is none (Unicode standard, table 3-7).
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const unsigned low = first == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = first == 0xed ? 0x9f : 0xbf;
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const unsigned low = first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = first == 0xf4 ? 0x8f : 0xbf;
    return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

// Keys are bytes, not text: what is no UTF-8 becomes the replacement character, so that the line stays JSON.
void append_quoted(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const char c = text.front();
    size_t length = 1;
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += "\\u00";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[c & 0xf];
    } else if (length = utf8_length(text); length == 0) {
      length = 1;
      out += "\\ufffd";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  out += '"';
}

void append_field(std::string& out, const LogField& field) {
  append_quoted(out, field.name);
  out += ':';
  // "nan" and "inf" are numbers to C++ but not to JSON.
  const bool finite = field.text.find_first_of("ni") == std::string::npos;
  if ((field.number && finite) || field.boolean) {
    out += field.text;
  } else {
    append_quoted(out, field.text);
  }
}

std::string timestamp() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  const std::time_t seconds = micros / 1'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  const size_t length = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + length, sizeof(text) - length, ".%06dZ", static_cast<int>(micros % 1'000'000));
  return text;
}

std::string format(bool json, LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  const std::string_view name = kLevelNames[static_cast<size_t>(level)];
  std::string line;
  if (json) {
    line.append("{\"level\":\"").append(name).append("\",\"ts\":\"").append(timestamp()).append("\",\"msg\":");
    append_quoted(line, message);
    for (const LogField& field : fields) {
      line += ',';
      append_field(line, field);
    }
    line += '}';
    return line;
  }
  line.append(timestamp()).append("\t").append(name).append("\t").append(message);
  if (fields.size() > 0) {
    line += "\t{";
    for (const LogField& field : fields) {
      if (&field != fields.begin()) line += ", ";
      append_field(line, field);
    }
    line += '}';
  }
  return line;
}

}  // namespace

void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  Logger& current = logger();
  if (level < current.level) return;
  current.sinks.log(kSpdlogLevels[static_cast<size_t>(level)],
                    spdlog::string_view_t(format(current.json, level, message, fields)));
}

Status open_log(const LogOptions& options) {
  std::vector<spdlog::sink_ptr> sinks;
  std::string_view rest = options.outputs;
  while (!rest.empty()) {
    const std::string output(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(rest.size(), output.size() + 1));
    try {
      if (output == "stderr") {
        sinks.push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
      } else if (output == "stdout") {
        sinks.push_back(std::make_shared<spdlog::sinks::stdout_sink_mt>());
      } else if (!output.empty()) {
        sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(output));
      }
    } catch (const spdlog::spdlog_ex& error) {
      return fail(Code::kInvalidArgument, "cannot open log output \"" + output + "\": " + error.what());
    }
  }
  if (sinks.empty()) return fail(Code::kInvalidArgument, "no log output given");
  Logger& current = logger();
  current.level = options.level;
  current.json = options.json;
  current.sinks.sinks() = std::move(sinks);
  current.pass_lines_through();
  return {};
}
