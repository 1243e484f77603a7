// The files of snapshots on this member.
//
//   <data-dir>/snap/<term>-<index>.snap            whole: made here, for members that lag
//   <data-dir>/snap/making.tmp                     one that is being made; removed at the next start
//   <data-dir>/snap/incoming-<term>-<index>.part   one that is being fetched, or waits to be installed
#pragma once

#include <string>
#include <vector>

#include "base/disk.h"
#include "member/generation.h"

namespace member {

std::string snapshot_folder(const std::string& data_dir);
std::string snapshot_path(const std::string& data_dir, const Generation& snapshot);
std::string unfinished_snapshot_path(const std::string& data_dir);
std::string incoming_path(const std::string& data_dir, const Generation& snapshot);

// Of what is in the folder, oldest first; none if there is no such folder.
Result<std::vector<Generation>> list_snapshots(Disk& disk, const std::string& data_dir);
Result<std::vector<Generation>> list_incoming(Disk& disk, const std::string& data_dir);

}  // namespace member
