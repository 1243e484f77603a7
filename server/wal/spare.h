// The next segment's file while it is being filled with zeros. Written blocks matter: a batch over blocks that were
// only reserved makes each sync write file system metadata too (190 us instead of 120 us on ext4 here). Filling is done
// in steps, each synced, so that no append waits long for it. Thread: the wal stage.
#pragma once

#include <memory>
#include <string>

#include "base/disk.h"
#include "base/result.h"

namespace wal {

constexpr uint64_t kSpareStepBytes = 1 << 20;
constexpr char kSpareName[] = "next.tmp";

class Spare {
 public:
  Spare(Disk& disk, const std::string& folder) : disk_(disk), path_(folder + "/" + kSpareName) {}

  bool is_ready(uint64_t bytes) const { return file_ != nullptr && filled_ >= bytes && size_ >= bytes; }
  uint64_t filled() const { return filled_; }
  uint64_t bytes_on_disk() const { return size_; }
  const std::string& path() const { return path_; }
  File& file() { return *file_; }

  // One step towards `bytes`. After kResourceExhausted the file is gone and its space free again.
  Status step(uint64_t bytes);
  void release() { forget(); }  // it was renamed: a segment now
  void discard();               // best effort

 private:
  void forget();
  Status try_step(uint64_t bytes);

  Disk& disk_;
  const std::string path_;
  std::unique_ptr<File> file_;
  uint64_t size_ = 0;
  uint64_t filled_ = 0;
};

}  // namespace wal
