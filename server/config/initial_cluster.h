// --initial-cluster: which members begin a cluster, or make up the one that is joined. Member and cluster ids follow
// from it, so all of the first members must be given the same list.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/options.h"

namespace config {

// "name=URL" pairs, comma separated; a name that comes several times has several URLs. By name, URLs sorted. A URL that
// comes twice is refused, as in etcd.
Result<std::vector<InitialMember>> parse_initial_cluster(std::string_view text);

// "a=http://a:1,b=http://b:1"
std::string join(const std::vector<InitialMember>& members);

// The addresses of a host name, as text; none: it is not known (yet).
using Resolve = std::function<std::vector<std::string>(const std::string& host)>;
std::vector<std::string> addresses_of(
    const std::string& host);  // asks the system; may take as long as its name servers

// The rules that count only while the data folder is empty; later the members are in there, and etcd does not look at
// these flags either. A new cluster: the advertised peer URLs are those that --initial-cluster has for this member.
// Names are resolved only where the texts differ. What cannot be judged because a name is not known yet is a warning:
// members may start before their names do. To join: there are others.
Status check_first_start(const Options& options, const Resolve& resolve, std::vector<std::string>& warnings);

}  // namespace config
