// What this server calls itself. Tools compare the etcd version to decide which calls exist, so it names the release
// whose API is spoken; our own version counts our releases.
#pragma once

#include <string_view>

namespace config {

inline constexpr std::string_view kEtcdVersion = "3.6.14";    // /version etcdserver, Status.version, --version
inline constexpr std::string_view kClusterVersion = "3.6.0";  // /version etcdcluster
inline constexpr std::string_view kProgramName = "conclave";
inline constexpr std::string_view kProgramVersion = "0.1.0";  // as in CMakeLists.txt; a test compares them

}  // namespace config
