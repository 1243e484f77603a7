// The replicated lease table: what a lease is and which keys hang on it. No clock: when a lease ends is the leader
// loop's business (lease/deadlines.h). Changed by the apply thread only; asked from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/thread.h"
#include "store/store.h"

namespace lease {

inline constexpr int64_t kTtlMaxSeconds = 9'000'000'000;  // etcd's
inline constexpr const char* kErrorNotFound = "etcdserver: requested lease not found";
inline constexpr const char* kErrorExists = "etcdserver: lease already exists";
inline constexpr const char* kErrorTtlTooLarge = "etcdserver: too large lease TTL";

struct Info {
  int64_t id = 0;
  int64_t ttl = 0;        // granted, seconds
  int64_t remaining = 0;  // as of the last checkpoint; 0: the whole ttl
};

// Every change is staged in the caller's store transaction by the caller (apply) and made here at once; undo() takes
// the changes since the last commit() back when that transaction could not be committed.
class Table {
 public:
  void load(const std::vector<store::LeaseRow>& rows);  // at open
  Status grant(int64_t id, int64_t ttl);  // kFailedPrecondition kErrorExists; kOutOfRange kErrorTtlTooLarge;
                                          // id 0: kNotFound kErrorNotFound, as etcd's
  // The keys that were attached, sorted; the lease is gone. kNotFound kErrorNotFound.
  Result<std::vector<Bytes>> revoke(int64_t id);
  Status checkpoint(int64_t id, int64_t remaining);  // kNotFound
  void attach(int64_t id, std::string_view key);     // a lease that exists
  void detach(int64_t id, std::string_view key);     // fine if it is gone
  void commit();
  void undo();

  // Any thread.
  std::optional<Info> find(int64_t id) const;
  std::vector<Bytes> keys(int64_t id) const;  // sorted
  size_t key_count(int64_t id) const;         // 0 also when there is no such lease
  bool holds(int64_t id, std::string_view key) const;
  std::vector<Info> list() const;  // by id
  size_t size() const;

 private:
  struct Lease {
    int64_t ttl = 0;
    int64_t remaining = 0;
    std::set<Bytes, std::less<>> keys;
  };
  // How to take one change back. The last one made is the first one taken back.
  struct Undo {
    enum class Kind { kGrant, kRevoke, kCheckpoint, kAttach, kDetach } kind;
    int64_t id = 0;
    int64_t remaining = 0;  // of kCheckpoint: what it was
    Bytes key;              // of kAttach and kDetach
    Lease lease;            // of kRevoke: the whole lease, moved
  };
  mutable Mutex mutex_;
  std::unordered_map<int64_t, Lease> leases_ GUARDED_BY(mutex_);
  std::vector<Undo> undo_ GUARDED_BY(mutex_);  // since the last commit(); as long as the caller's batch
};

}  // namespace lease
