// What the tests of elections wait for and look at.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "codec.h"
#include "conclave/client.h"
#include "core.h"

namespace conclave::testing {

template <class Ready>
bool eventually(Ready ready, std::chrono::milliseconds limit = std::chrono::seconds(10)) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < until) {
    if (ready()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return ready();
}

inline std::int64_t keys_below(const Client& client, const std::string& prefix) {
  return client.range({.key = prefix, .prefix = true, .count_only = true}).or_throw().count;
}

// So many have arrived in the queue.
inline bool keys_become(const Client& client, const std::string& prefix, std::int64_t count) {
  return eventually([&] { return keys_below(client, prefix) == count; });
}

inline void revoke(const Client& client, LeaseId lease) {
  (void)internal::Access::core(client)
      .call(internal::path::kLeaseRevoke, internal::Json::object().set("ID", internal::int64(number(lease))),
            internal::Effect::kOnce, {})
      .or_throw();
}

}  // namespace conclave::testing
