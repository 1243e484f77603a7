// Request targets and paths, as Go's net/http treats them in front of etcd's handlers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace http {

// nullopt: a '%' that two hexadecimal digits do not follow.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space = false);
// What a path needs so that it is a path again: "/a b" as "/a%20b".
std::string percent_encode_path(std::string_view path);

// Without "//", "/./" and "/../"; always with a leading slash, a trailing one is kept.
std::string clean_path(std::string_view path);

struct Target {
  std::string path;   // decoded
  std::string query;  // as it came, without '?'
};
// From a request line: origin form ("/a?b") or absolute form ("http://host/a?b"). nullopt: neither.
std::optional<Target> parse_target(std::string_view target);

}  // namespace http
