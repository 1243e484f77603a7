#include "conclave/client.h"

#include <string>
#include <utility>

#include "codec.h"
#include "core.h"
#include "retry.h"

namespace conclave {
inline namespace v1 {

namespace {

constexpr int kCallbackThreadsMax = 64;

Status check(const ClientOptions& options) {
  if (options.endpoints.empty()) return fail(Code::kInvalidArgument, "endpoints: at least one");
  if (options.endpoints.size() > internal::kEndpointsMax)
    return fail(Code::kInvalidArgument, "endpoints: at most " + std::to_string(internal::kEndpointsMax));
  for (const std::string& endpoint : options.endpoints) {
    if (!internal::valid_endpoint(endpoint))
      return fail(Code::kInvalidArgument, "endpoints: '" + endpoint + "' is not like http://host:2379");
    if (endpoint.starts_with("https:"))
      return fail(Code::kInvalidArgument, "endpoints: '" + endpoint + "': https is not supported by this version");
  }
  if (options.call_timeout <= std::chrono::milliseconds::zero())
    return fail(Code::kInvalidArgument, "call_timeout: must be positive");
  if (options.callback_threads < 1 || options.callback_threads > kCallbackThreadsMax)
    return fail(Code::kInvalidArgument, "callback_threads: 1 to " + std::to_string(kCallbackThreadsMax));
  return {};
}

constexpr std::chrono::milliseconds kConflictPauseMax{500};  // between two attempts of update()

}  // namespace

using internal::Effect;

Result<Client> Client::open(ClientOptions options) {
  if (auto checked = check(options); !checked) return fail(std::move(checked.error()));
  return Client(std::make_shared<internal::Handle>(internal::Core::create(std::move(options))));
}

Result<std::optional<KeyValue>> Client::get(std::string_view key, GetOptions options) const {
  auto found = range({.key = std::string(key),
                      .revision = options.revision,
                      .serializable = options.serializable,
                      .call = std::move(options.call)});
  if (!found) return fail(std::move(found.error()));
  if (found->kvs.empty()) return std::optional<KeyValue>();
  return std::optional<KeyValue>(std::move(found->kvs.front()));
}

Result<RangeResult> Client::range(RangeOptions options) const {
  auto& core = *handle_->core();
  auto reply = core.call(internal::path::kRange, encode_range(options, core.keys()), Effect::kNone, options.call);
  if (!reply) return fail(std::move(reply.error()));
  return internal::decode_range(reply->json, core.keys());
}

Result<PutResult> Client::put(std::string_view key, std::string_view value, PutOptions options) const {
  auto& core = *handle_->core();
  auto body = internal::encode_put(key, value, options, core.keys());
  auto reply = core.call(internal::path::kPut, std::move(body), Effect::kOnce, options.call);
  if (!reply) return fail(std::move(reply.error()));
  return internal::decode_put(reply->json, core.keys());
}

Result<DeleteResult> Client::del(std::string_view key, DeleteOptions options) const {
  auto& core = *handle_->core();
  auto body = internal::encode_delete(key, options, core.keys());
  auto reply = core.call(internal::path::kDelete, std::move(body), Effect::kOnce, options.call);
  if (!reply) return fail(std::move(reply.error()));
  return internal::decode_delete(reply->json, core.keys());
}

Result<TxnResult> Client::commit(const Txn& txn, CallOptions call) const {
  auto& core = *handle_->core();
  auto reply = core.call(internal::path::kTxn, internal::encode_txn(txn, core.keys()), Effect::kOnce, call);
  if (!reply) return fail(std::move(reply.error()));
  return internal::decode_txn(reply->json, core.keys());
}

Result<PutResult> Client::update(std::string_view key, const UpdateFunction& change, UpdateOptions options) const {
  if (!change) return fail(Code::kInvalidArgument, "update: there is no function");
  const std::string name(key);
  const auto& stop = options.call.stop;
  const auto deadline = internal::deadline_of(options.call, handle_->core()->call_timeout());
  internal::Backoff backoff(kConflictPauseMax);
  auto now = get(name, {.call = internal::rest_of(deadline, stop)});
  if (!now) return fail(std::move(now.error()));
  for (int conflicts = 0;;) {
    auto value = change(*now);
    if (!value) return fail(std::move(value.error()));
    Txn txn;
    txn.when(compare::mod_revision(name) == (*now ? (*now)->mod_revision : Revision{}))
        .then(op::put(name, std::move(*value),
                      {.lease = options.lease.value_or(LeaseId{}), .ignore_lease = *now && !options.lease}))
        .otherwise(op::get(name));
    auto result = commit(txn, internal::rest_of(deadline, stop));
    if (!result) return fail(std::move(result.error()));
    if (result->succeeded) return PutResult{.revision = result->revision, .previous = std::move(*now)};
    const RangeResult* found = result->results.empty() ? nullptr : result->results.front().range();
    if (found == nullptr) return fail(Code::kInternal, "the server's answer to the update has no key");
    // What came along serves the second attempt. Then there is a crowd: each waits a little and reads again.
    if (++conflicts == 1) {
      *now = found->kvs.empty() ? std::nullopt : std::optional<KeyValue>(found->kvs.front());
      continue;
    }
    internal::pause_until(std::min(deadline, internal::after(backoff.next())), stop);
    if (stop.stop_requested()) return fail(Code::kCancelled, "stopped by the caller");
    if (internal::BootClock::now() >= deadline)
      return fail(Code::kDeadlineExceeded,
                  name + ": changed by others during " + std::to_string(conflicts) + " attempts; nothing was stored");
    now = get(name, {.call = internal::rest_of(deadline, stop)});
    if (!now) return fail(std::move(now.error()));
  }
}

Result<Revision> Client::compact(Revision revision, CompactOptions options) const {
  auto& core = *handle_->core();
  auto reply = core.call(internal::path::kCompact, internal::encode_compact(revision, options.physical), Effect::kOnce,
                         options.call);
  if (!reply) return fail(std::move(reply.error()));
  return internal::header_revision(reply->json);
}

Result<ServerStatus> Client::status(CallOptions call) const {
  auto reply = handle_->core()->call(internal::path::kStatus, internal::Json::object(), Effect::kNone, call);
  if (!reply) return fail(std::move(reply.error()));
  ServerStatus status = internal::decode_status(reply->json);
  status.endpoint = reply->endpoint;
  return status;
}

ConnectionState Client::state() const {
  auto& core = *handle_->core();
  if (core.closed()) return ConnectionState::kClosed;
  return core.endpoints().connected() ? ConnectionState::kConnected : ConnectionState::kConnecting;
}

Status Client::close(CallOptions call) { return handle_->core()->close(call); }

}  // namespace v1
}  // namespace conclave
