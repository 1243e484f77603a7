// From single answers of a health check to the level that is published: it changes only after several answers in a row.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "conclave/registry.h"

namespace conclave::inline v1::internal {

class HealthFilter {
 public:
  HealthFilter(int fall, int rise) : fall_(fall), rise_(rise) {}

  // The health to publish from now on, if it changed. The first answer counts at once. Of several levels in a row of
  // worse (or better) answers, the one nearest to the present level wins: all of the row were at least that far.
  std::optional<Health> observe(Health answer) {
    if (!known_ || answer.level == health_.level) {
      row_ = 0;
      if (known_) return std::nullopt;
      known_ = true;
      health_ = std::move(answer);
      return health_;
    }
    const bool worse = answer.level > health_.level;
    if (row_ == 0 || worse != row_is_worse_) {
      row_ = 0;
      row_is_worse_ = worse;
      nearest_ = answer;
    } else if (worse ? answer.level <= nearest_.level : answer.level >= nearest_.level) {
      nearest_ = answer;
    }
    if (++row_ < (worse ? fall_ : rise_)) return std::nullopt;
    row_ = 0;
    health_ = std::move(nearest_);
    return health_;
  }

 private:
  const int fall_;
  const int rise_;
  bool known_ = false;
  Health health_;
  Health nearest_;
  bool row_is_worse_ = false;
  int row_ = 0;
};

}  // namespace conclave::inline v1::internal
