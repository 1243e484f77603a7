// The command line and the environment of the server: etcd's flags, values, defaults and forms (--flag value,
// --flag=value, -flag value, --switch, --switch=true), read the way Go's flag package reads them: the last one wins, a
// switch never takes the next argument.
//
// A flag wins over CONCLAVE_<FLAG>, which wins over ETCD_<FLAG>; an empty variable counts as not set. `experimental-`
// before a name is dropped. Each flag of etcd is one of three (flag.h): it works; it does not apply here, which gives a
// warning; or its feature is missing, and every value that would need it is refused. Nothing is ignored in silence.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/options.h"

namespace config {

struct Parsed {
  std::optional<std::string>
      print;  // --help or --version: print this to stdout and exit with 0; the rest means nothing
  Options options;
  std::vector<std::string> warnings;  // to be logged once the log is open
};

// Reads nothing but its arguments (and the number of processors, for a default); touches nothing. `environ` is what
// main gets: "NAME=value" strings up to a null pointer. Errors are kInvalidArgument and name the flag or variable, the
// value and what is legal: print them to stderr and exit with 1.
Result<Parsed> parse(int argc, const char* const* argv, const char* const* environ);

}  // namespace config
