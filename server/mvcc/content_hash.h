// The 64-bit hash behind Mvcc::content_hash(). Its result is stored and compared between members, so it is the same on
// every machine and its definition is part of the format: changing it needs a new format version.
#pragma once

#include <cstdint>
#include <string_view>

#include "mvcc/event.h"

namespace mvcc {

// Of bytes of any length; good enough to spread keys over a table too. Not for hostile input where collisions cost.
uint64_t hash_bytes(std::string_view bytes, uint64_t seed);

// Declared in mvcc.h too, for users; never 0, which stands for "not known" in the index.
uint64_t content_hash_of(std::string_view key, std::string_view value, int64_t create_revision, int64_t mod_revision,
                         int64_t version, int64_t lease);

}  // namespace mvcc
