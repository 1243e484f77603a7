#include "mvcc/content_hash.h"

#include <cstring>

#include "mvcc/mvcc.h"

namespace mvcc {
namespace {

// Odd constants without structure: the first 64 bits after the point of sqrt(2), sqrt(3), sqrt(5), made odd.
constexpr uint64_t kA = 0x6a09e667f3bcc909;
constexpr uint64_t kB = 0xbb67ae8584caa73b;
constexpr uint64_t kC = 0x3c6ef372fe94f82b;

// Both halves of the 128-bit product, folded: every input bit reaches every output bit.
uint64_t fold(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t load8(const char* from) {
  uint64_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

uint64_t hash_bytes(std::string_view bytes, uint64_t seed) {
  uint64_t hash = fold(seed ^ kA, bytes.size() ^ kB);
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 16; at += 16, left -= 16) hash = fold(hash ^ load8(at), load8(at + 8) ^ kC);
  if (left >= 8) {
    hash = fold(hash ^ load8(at), kB);
    at += 8;
    left -= 8;
  }
  if (left > 0) {
    uint64_t tail = 0;
    std::memcpy(&tail, at, left);
    hash = fold(hash ^ tail, kC);
  }
  return fold(hash ^ kB, kA);
}

uint64_t content_hash_of(std::string_view key, std::string_view value, int64_t create_revision, int64_t mod_revision,
                         int64_t version, int64_t lease) {
  uint64_t hash = hash_bytes(key, kC);
  hash = hash_bytes(value, hash);
  for (const int64_t number : {create_revision, mod_revision, version, lease}) {
    hash = fold(hash ^ static_cast<uint64_t>(number), kA) + kB;
  }
  return hash != 0 ? hash : 1;
}

uint64_t content_hash_of(const KeyValue& kv) {
  return content_hash_of(kv.key, kv.value, kv.create_revision, kv.mod_revision, kv.version, kv.lease);
}

}  // namespace mvcc
