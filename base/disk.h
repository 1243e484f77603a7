// Files as the server uses them. Everything under `wal`, `store` and `snapshot` goes through this, so that a simulated
// disk can lose, tear, refuse and damage what it was given.
//
// Errors: kNotFound (no such file), kAlreadyExists, kResourceExhausted (no space, quota), kUnavailable (lock held by
// another process), kDataLoss (I/O error). The message names the path and the system's text.
// Thread: a File belongs to one thread at a time except `read`, which several threads may call beside one writer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

class File {
 public:
  virtual ~File() = default;
  // Up to into.size() bytes; fewer only at the end of the file.
  virtual Result<size_t> read(uint64_t offset, std::span<std::byte> into) = 0;
  virtual Status write(uint64_t offset, BytesView from) = 0;  // all of it, or an error with an unknown part written
  virtual Status sync() = 0;                                  // data and size are on stable storage when this returns
  // A hint that promises nothing about durability: begin to write this range out (and wait for that), so that a later
  // sync finds little to do and other files' syncs do not queue behind it. An error counts as one of sync().
  virtual Status write_out(uint64_t /*offset*/, uint64_t /*length*/, bool /*wait*/) { return {}; }
  virtual Status truncate(uint64_t size) = 0;
  virtual Status allocate(uint64_t size) = 0;  // reserves space up to `size` and sets the size (zeros); never shrinks
  virtual Result<uint64_t> size() = 0;
};

enum class OpenMode {
  kRead,       // must exist
  kReadWrite,  // must exist
  kCreate,     // read and write; made (0600) if absent
  kCreateNew,  // read and write; kAlreadyExists if present
};

// Released when destroyed (and by the system when the process dies).
class FileLock {
 public:
  virtual ~FileLock() = default;
};

class Disk {
 public:
  virtual ~Disk() = default;
  virtual Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) = 0;
  virtual Status remove(const std::string& path) = 0;                         // a file
  virtual Status rename(const std::string& from, const std::string& to) = 0;  // replaces `to`
  virtual Status create_directory(const std::string& path) = 0;               // 0700, with parents; fine if there
  virtual Status remove_directory(const std::string& path) = 0;               // and what is in it
  virtual Status sync_directory(const std::string& path) = 0;  // makes creations, renames and removals in it durable
  virtual Result<std::vector<std::string>> list(const std::string& path) = 0;  // names, sorted, without . and ..
  virtual Result<bool> exists(const std::string& path) = 0;
  // kUnavailable when another process (or another lock of this one) holds it.
  virtual Result<std::unique_ptr<FileLock>> lock(const std::string& path) = 0;
  virtual Result<uint64_t> free_bytes(const std::string& path) = 0;
};

Disk& real_disk();
