// The connection to a cluster: a cheap copy, safe to use from all threads.
//
// A member that does not answer is left for the next one. Reads are repeated until their deadline; a write only while
// nothing can have happened. What went out and was never answered comes back as kMayHaveHappened. Repeats of what a
// member has got are at most a tenth of the calls of a minute plus ten; beyond, an error is told at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conclave/call.h"
#include "conclave/kv.h"
#include "conclave/result.h"
#include "conclave/txn.h"
#include "conclave/types.h"

namespace conclave {
inline namespace v1 {

enum class LogLevel : std::uint8_t { kInfo, kWarning, kError };

struct LogLine {
  LogLevel level = LogLevel::kInfo;
  std::string text = {};
};

struct ClientOptions {
  std::vector<std::string> endpoints = {};  // "http://host:2379"; at least one
  std::string key_prefix = {};              // put before every key and name; taken off again in answers
  std::chrono::milliseconds call_timeout = std::chrono::seconds(5);
  int callback_threads = 2;                           // 1 to 64
  std::function<void(const LogLine&)> log = nullptr;  // called on a callback thread, one line at a time

  // Reads CONCLAVE_ENDPOINTS (comma-separated; http://127.0.0.1:2379 if unset) and CONCLAVE_KEY_PREFIX. A variable for
  // a feature this version lacks (CONCLAVE_USER, CONCLAVE_PASSWORD_FILE, CONCLAVE_CA_FILE, CONCLAVE_CERT_FILE,
  // CONCLAVE_KEY_FILE) is refused by name rather than ignored.
  static Result<ClientOptions> from_environment();
};

enum class ConnectionState : std::uint8_t {
  kConnecting,  // no member has answered lately
  kConnected,
  kClosed,
};

// What one member says of itself.
struct ServerStatus {
  std::string endpoint = {};
  std::string version = {};
  std::uint64_t cluster_id = 0;
  std::uint64_t member_id = 0;
  std::uint64_t leader_id = 0;  // zero: it knows none
  Revision revision{};
  std::int64_t database_bytes = 0;
};

// What the key holds now (nothing: it does not exist) to what it shall hold. An error ends the update as it is.
using UpdateFunction = std::function<Result<std::string>(const std::optional<KeyValue>& now)>;

class [[nodiscard]] Client {
 public:
  // Checks the options and returns at once; members that do not answer are no error here. kInvalidArgument: no
  // endpoint, a malformed one, or an https one (not supported by this version).
  static Result<Client> open(ClientOptions options);

  Result<std::optional<KeyValue>> get(std::string_view key, GetOptions options = {}) const;
  Result<RangeResult> range(RangeOptions options) const;
  Result<PutResult> put(std::string_view key, std::string_view value, PutOptions options = {}) const;
  Result<DeleteResult> del(std::string_view key, DeleteOptions options = {}) const;
  Result<TxnResult> commit(const Txn& txn, CallOptions call = {}) const;
  // Reads, lets `change` say the new value, and stores it if the key is still as it was read; if it is not, all of it
  // again, until the deadline (kDeadlineExceeded). `change` runs in the caller's thread, perhaps
  // several times, and what it throws passes through. `previous` is what the last call of it was given. A store that
  // was never answered is not repeated: kMayHaveHappened.
  Result<PutResult> update(std::string_view key, const UpdateFunction& change, UpdateOptions options = {}) const;
  Result<Revision> compact(Revision revision, CompactOptions options = {}) const;  // gives the store's revision

  Result<ServerStatus> status(CallOptions call = {}) const;  // of the member in use
  ConnectionState state() const;                             // in memory

  // Ends everything made from this client (sessions are revoked, watches end), waits for that as long as `call` allows,
  // and tells. Afterwards every call gives kFailedPrecondition, "client is closed". Without it the last object made
  // from the client does the same when it is destroyed, within 200 ms.
  Status close(CallOptions call = {});

 private:
  friend struct internal::Access;
  explicit Client(std::shared_ptr<internal::Handle> handle) : handle_(std::move(handle)) {}
  std::shared_ptr<internal::Handle> handle_;
};

}  // namespace v1
}  // namespace conclave
