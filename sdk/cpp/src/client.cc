#include "conclave/client.h"

#include <string>
#include <utility>

#include "codec.h"
#include "core.h"

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
