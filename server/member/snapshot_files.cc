#include "member/snapshot_files.h"

#include <algorithm>
#include <string_view>

namespace member {
namespace {

constexpr std::string_view kIncoming = "incoming-";
constexpr std::string_view kPart = ".part";
constexpr std::string_view kSnap = ".snap";

Result<std::vector<Generation>> list(Disk& disk, const std::string& data_dir, std::string_view before,
                                     std::string_view after) {
  std::vector<Generation> found;
  const std::string folder = snapshot_folder(data_dir);
  TRY_ASSIGN(const bool there, disk.exists(folder));
  if (!there) return found;
  TRY_ASSIGN(const auto names, disk.list(folder));
  for (const std::string_view name : names) {
    if (name.size() < before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) continue;
    const auto middle = name.substr(before.size(), name.size() - before.size() - after.size());
    if (const auto snapshot = Generation::parse(middle)) found.push_back(*snapshot);
  }
  std::sort(found.begin(), found.end(), [](const Generation& a, const Generation& b) { return a.index < b.index; });
  return found;
}

}  // namespace

std::string snapshot_folder(const std::string& data_dir) { return data_dir + "/snap"; }

std::string snapshot_path(const std::string& data_dir, const Generation& snapshot) {
  return snapshot_folder(data_dir) + "/" + snapshot.name() + std::string(kSnap);
}

std::string unfinished_snapshot_path(const std::string& data_dir) { return snapshot_folder(data_dir) + "/making.tmp"; }

std::string incoming_path(const std::string& data_dir, const Generation& snapshot) {
  return snapshot_folder(data_dir) + "/" + std::string(kIncoming) + snapshot.name() + std::string(kPart);
}

Result<std::vector<Generation>> list_snapshots(Disk& disk, const std::string& data_dir) {
  return list(disk, data_dir, "", kSnap);
}

Result<std::vector<Generation>> list_incoming(Disk& disk, const std::string& data_dir) {
  return list(disk, data_dir, kIncoming, kPart);
}

}  // namespace member
