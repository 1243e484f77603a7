// CHECK(condition, "text", values...): "we broke". On in release; prints the place, the condition and the values,
// aborts. Never for what the outside world can cause: that is a Result.
#pragma once

#include <sstream>
#include <string>

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& values);

template <class... Values>
std::string check_values(const Values&... values) {
  std::ostringstream out;
  ((out << ' ' << values), ...);
  return out.str();
}

#define CHECK(condition, ...)                                                  \
  do {                                                                         \
    if (!(condition)) [[unlikely]]                                             \
      check_failed(__FILE__, __LINE__, #condition, check_values(__VA_ARGS__)); \
  } while (false)
