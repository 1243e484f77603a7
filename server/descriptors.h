// How many files and connections this process may have open, and how many of them its clients may take: a member that
// has none left for the next file of its log cannot go on.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "config/options.h"

struct Descriptors {
  size_t limit = 0;                      // open at once: files, connections, and what threads wake each other with
  size_t clients_max = 0;                // connections of clients
  size_t requests_of_peer_port_max = 0;  // connections to the peer port that speak HTTP
};

// What a limit leaves for whom. kResourceExhausted: too low to work; the text says how to raise it.
Result<Descriptors> share_descriptors(size_t limit, size_t io_threads);

// Of this process, after its soft limit was raised to the hard one.
Result<Descriptors> own_descriptors(const config::Options& options);
