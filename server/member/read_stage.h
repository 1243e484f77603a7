// The `read` stage: reads that had to wait for their index go on here, on a thread that may wait for a disk.
#pragma once

#include <functional>
#include <vector>

#include "base/check.h"
#include "member/options.h"
#include "member/stage.h"

namespace member {

class ReadStage final : public Stage {
 public:
  ReadStage() : inbox_(*this, kCallsWaitingMax) {}
  void push(std::function<void()> read) { CHECK(inbox_.push(std::move(read)), "reads"); }
  Time step() override {
    inbox_.drain(reads_);
    for (const auto& read : reads_) read();
    return kWhenWoken;
  }
  const char* name() const override { return "read"; }

 private:
  Inbox<std::function<void()>> inbox_;
  std::vector<std::function<void()>> reads_;
};

}  // namespace member
