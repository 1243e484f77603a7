// Writes the configuration that ConfigReloaders follow: a set of keys in one transaction, so that nobody ever sees half
// of it, or it and what others change at the same time.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "conclave/call.h"
#include "conclave/client.h"
#include "conclave/fields.h"
#include "conclave/kv.h"
#include "conclave/result.h"
#include "conclave/types.h"

namespace conclave {
inline namespace v1 {

// What follows the prefix, and its value.
using ConfigMap = std::map<std::string, std::string, std::less<>>;

struct PublisherOptions {
  std::string prefix = {};  // "config/orders/"
  // The server's --max-txn-ops. One publication has at most so many keys, those that are deleted included.
  std::size_t operations_max = 128;
};

struct PublishOptions {
  bool remove_others = false;  // delete what is below the prefix and not in the set
  // The revision of the set that this one was made from, as read() gave it: kAborted, and nothing was written, if
  // anything below the prefix was changed, created or deleted since. kOutOfRange: that revision was compacted.
  std::optional<Revision> based_on = std::nullopt;
  CallOptions call = {};  // all of it
};

struct Published {
  Revision revision{};      // at which readers see the whole set
  std::size_t stored = 0;   // keys
  std::size_t deleted = 0;  // keys
};

// Safe from all threads. Keys that are published have no lease.
class [[nodiscard]] ConfigPublisher {
 public:
  ConfigPublisher(const Client& client, PublisherOptions options);

  // The set as it is, or as it was at a revision (kOutOfRange: compacted, or in the future).
  Result<ConfigSet> read(GetOptions options = {}) const;

  // kInvalidArgument, and nothing was written: the set and what it deletes are more than `operations_max` (the message
  // has the numbers), or it is empty and deletes nothing. kMayHaveHappened: it was sent and never answered; read()
  // tells.
  Result<Published> publish(const ConfigMap& values, PublishOptions options = {}) const;

  // Publishes the set as it was at `revision`, keys that came later deleted (`remove_others` is implied). kNotFound:
  // there was nothing below the prefix then; publish an empty set to have that.
  Result<Published> restore(Revision revision, PublishOptions options = {}) const;

 private:
  Client client_;
  PublisherOptions options_;
};

}  // namespace v1
}  // namespace conclave
