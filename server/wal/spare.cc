#include "wal/spare.h"

#include <algorithm>
#include <vector>

namespace wal {

Status Spare::step(uint64_t bytes) {
  Status status = try_step(bytes);
  if (!status && status.error().code == Code::kResourceExhausted) discard();
  return status;
}

Status Spare::try_step(uint64_t bytes) {
  if (!file_) {
    TRY_ASSIGN(file_, disk_.open(path_, OpenMode::kCreate));
    TRY(file_->truncate(0));
  }
  if (size_ < bytes) {
    TRY(file_->allocate(bytes));
    size_ = bytes;
  }
  static const std::vector<std::byte> zeros(kSpareStepBytes);
  const uint64_t count = std::min(kSpareStepBytes, size_ - filled_);
  TRY(file_->write(filled_, BytesView(zeros).first(count)));
  TRY(file_->sync());
  filled_ += count;
  return {};
}

void Spare::forget() {
  file_.reset();
  size_ = 0;
  filled_ = 0;
}

void Spare::discard() {
  forget();
  (void)disk_.remove(path_);  // what stays is removed by the next open
}

}  // namespace wal
