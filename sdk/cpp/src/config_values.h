// What a ConfigReloader knows of its prefix: the values as of one revision, and their copy on disk.
#pragma once

#include <map>
#include <string>

#include "conclave/fields.h"
#include "conclave/kv.h"
#include "conclave/result.h"
#include "conclave/watch.h"

namespace conclave::inline v1::internal {

struct ConfigValues {
  std::map<std::string, std::string, std::less<>> values = {};  // by what follows the prefix
  Revision revision{};                                          // of the last change that is in

  static ConfigValues of(const std::string& prefix, const RangeResult& list);
  void apply(const std::string& prefix, const WatchBatch& batch);
};

// As cache_file.h; kInvalidArgument: it holds another prefix.
Status write_config(const std::string& path, const std::string& prefix, const ConfigValues& config);
Result<ConfigValues> read_config(const std::string& path, const std::string& prefix);

}  // namespace conclave::inline v1::internal
