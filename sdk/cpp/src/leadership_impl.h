// What a Leadership holds; Candidate looks into it.
#pragma once

#include <memory>
#include <string>

#include "conclave/election.h"
#include "core.h"
#include "hold.h"
#include "ownership.h"

namespace conclave {
inline namespace v1 {

class Leadership::Impl {
 public:
  Impl(std::shared_ptr<internal::Handle> handle, std::unique_ptr<internal::Hold> hold);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const std::shared_ptr<internal::Handle> handle_;
  const Token token_;
  const std::string key_;
  const std::shared_ptr<internal::Ownership> ownership_;
  std::unique_ptr<internal::Hold> hold_;  // null once resigned
};

}  // namespace v1
}  // namespace conclave
