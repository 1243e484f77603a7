// The table of flags: every flag of etcd 3.4 to 3.7 and a few of our own, each with what becomes of it here.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/options.h"

namespace config {

// What flags write to before the checks that look at several of them (checks.cc) make Options of it.
struct Draft {
  Options options;
  std::string initial_cluster;
  std::string auto_compaction_mode = "periodic";
  std::string auto_compaction_retention = "0";
  bool listen_client_urls_given = false;
  bool advertise_client_urls_given = false;
  std::vector<std::string> warnings;
};

struct Flag {
  enum class Kind : uint8_t { kText, kSwitch, kNumber, kDuration };
  enum class Standing : uint8_t {
    kWorks,
    kNoEffect,  // a well-formed value is taken, with a warning that says why it changes nothing
    kMissing,   // a value that asks for the feature is refused
  };

  std::string_view name;
  Kind kind = Kind::kText;
  Standing standing = Standing::kWorks;
  std::string_view group;    // kWorks: heading in --help
  std::string_view initial;  // kWorks: the default, as --help shows it
  std::string_view text;     // kWorks: what it sets; kNoEffect: why it has none; kMissing: what to do instead
  std::string_view legal;    // which values are legal, for messages; empty: any text of the kind
  // kMissing: the values, separated by '|', that ask for nothing. kNoEffect: the only legal values, if not empty.
  std::string_view values;
  // kWorks: stores the value; false: it is not legal. Whatever else is wrong comes as an Error, complete.
  std::function<Result<bool>(Draft&, std::string_view)> store;
};

const std::vector<Flag>& supported_flags();
const std::vector<Flag>& flags_of_others();

// Null if there is none; `name` without dashes, possibly with `experimental-` before it.
const Flag* find_flag(std::string_view name);

// Applies one value to the draft, or says what is wrong with it. `source` is how the user gave it: "--name",
// "ETCD_NAME".
Status apply_flag(const Flag& flag, std::string_view source, std::string_view value, Draft& draft);

std::optional<bool> parse_switch(std::string_view text);  // as Go's strconv.ParseBool
std::optional<int64_t> parse_number(std::string_view text);

Status check(Draft& draft);  // the rules between flags, and the defaults that follow from others

std::string help_text();

}  // namespace config
