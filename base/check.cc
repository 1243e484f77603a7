#include "base/check.h"

#include <cstdio>
#include <cstdlib>

void check_failed(const char* file, int line, const char* condition, const std::string& values) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s%s\n", file, line, condition, values.c_str());
  std::fflush(stderr);
  std::abort();
}
