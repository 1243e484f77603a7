// The messages of one watch stream, cut out of the bytes as they come.
#pragma once

#include <string>
#include <string_view>

#include "conclave/result.h"
#include "json.h"

namespace conclave::inline v1::internal {

// One message can hold many revisions. Beyond this the server sends nonsense.
constexpr std::size_t kWatchMessageBytesMax = 256u << 20;

class LineCutter {
 public:
  // Calls `line` for each complete one. False: a line is longer than kWatchMessageBytesMax.
  template <class Line>
  bool add(std::string_view piece, Line&& line) {
    while (true) {
      const std::size_t end = piece.find('\n');
      if (end == std::string_view::npos) break;
      if (partial_.empty()) {
        line(piece.substr(0, end));
      } else {
        partial_ += piece.substr(0, end);
        line(std::string_view(partial_));
        partial_.clear();
      }
      piece.remove_prefix(end + 1);
    }
    partial_ += piece;
    return partial_.size() <= kWatchMessageBytesMax;
  }

 private:
  std::string partial_;
};

}  // namespace conclave::inline v1::internal
