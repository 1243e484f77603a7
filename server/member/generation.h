// The generations of the store: one is in force, named by CURRENT; installing a snapshot builds another and puts it in
// its place. docs/format-store.md says what is found after a crash at each step.
//
//   <data-dir>/CURRENT                  one line: the generation's folder and a checksum
//   <data-dir>/store/<term>-<index>/    one generation; 0-0 is the first one of every member
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/disk.h"
#include "member/options.h"
#include "store/store.h"
#include "wal/wal.h"

namespace member {

// Named after the last entry that was in the snapshot it came from.
struct Generation {
  uint64_t term = 0;
  uint64_t index = 0;
  std::string name() const { return std::to_string(term) + "-" + std::to_string(index); }
  static std::optional<Generation> parse(std::string_view name);  // exactly what name() makes
  friend bool operator==(const Generation&, const Generation&) = default;
};

std::string store_folder(const Options& options, const Generation& generation);
store::Options store_options(const Options& options, const Generation& generation);

// With its parents, and there after a power cut, too: each name that is new is synced in the folder above it.
Status create_folder(Disk& disk, const std::string& path);

// nullopt: no such file. kDataLoss: damaged.
Result<std::optional<Generation>> read_current(Disk& disk, const std::string& data_dir);
// Durable when it returns.
Status write_current(Disk& disk, const std::string& data_dir, const Generation& generation);
std::string current_line(const std::string& name);  // the content of CURRENT, for advice

// A small file that is replaced whole and durably, or not at all.
Status write_line(Disk& disk, const std::string& path, const std::string& line);
Result<std::optional<std::string>> read_line(Disk& disk, const std::string& path);  // nullopt: there is none

// What the log has to hear for the generation in force, if a crash (or the stop of the old one) came between the two.
// A generation knows everything below its index, and its marks are not below it: a mark that is, is of the one before.
bool log_lacks_generation(const wal::WalContents& contents, const Generation& generation);
// Tells it: the log goes on behind the generation. `store`: just opened and never written to since it was built.
// Updates `contents`. kDataLoss: they cannot belong together.
Status log_generation(wal::Wal& wal, wal::WalContents& contents, const Generation& generation, const store::Meta& store,
                      const std::string& where);

// Other generations (half built, or of before), and what else a crash can leave. The one in force is open and in order.
Status remove_leftovers(Disk& disk, const Options& options, const Generation& in_force);

}  // namespace member
