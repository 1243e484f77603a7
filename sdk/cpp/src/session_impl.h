// What a Session holds; locks look into it.
#pragma once

#include <cstdint>
#include <memory>

#include "conclave/session.h"
#include "core.h"
#include "session_core.h"

namespace conclave {
inline namespace v1 {

class Session::Impl {
 public:
  Impl(std::shared_ptr<internal::Handle> handle, std::shared_ptr<internal::SessionCore> session);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const std::shared_ptr<internal::Handle>& handle() const { return handle_; }
  const std::shared_ptr<internal::SessionCore>& session() const { return session_; }
  void orphan() {
    orphaned_ = true;
    session_->orphan();
  }

 private:
  const std::shared_ptr<internal::Handle> handle_;
  const std::shared_ptr<internal::SessionCore> session_;
  std::uint64_t closer_ = 0;
  bool orphaned_ = false;
};

}  // namespace v1
}  // namespace conclave
