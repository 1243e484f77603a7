#include "codec.h"

#include <utility>

namespace conclave::inline v1::internal {

namespace {

constexpr const char* kOrders[] = {"NONE", "ASCEND", "DESCEND"};
constexpr const char* kTargets[] = {"KEY", "VERSION", "CREATE", "MOD", "VALUE"};

Json bytes(std::string_view text) { return Json(base64_encode(text)); }

std::string unbytes(const Json& json) {
  auto decoded = base64_decode(json.text());
  return decoded ? std::move(*decoded) : std::string();
}

void set_nonzero(Json& body, const char* name, std::int64_t number) {
  if (number != 0) body.set(name, int64(number));
}

void set_true(Json& body, const char* name, bool flag) {
  if (flag) body.set(name, true);
}

void set_range(Json& body, const KeySpace::Range& range) {
  body.set("key", bytes(range.key));
  if (!range.end.empty()) body.set("range_end", bytes(range.end));
}

KeyValue decode_kv(const Json& kv, const KeySpace& keys) {
  return {.key = keys.strip(unbytes(kv["key"])),
          .value = unbytes(kv["value"]),
          .create_revision = Revision{kv["create_revision"].integer()},
          .mod_revision = Revision{kv["mod_revision"].integer()},
          .version = kv["version"].integer(),
          .lease = LeaseId{kv["lease"].integer()}};
}

}  // namespace

Json int64(std::int64_t number) { return Json(std::to_string(number)); }

Result<Json> encode_range(const RangeOptions& options, const KeySpace& keys) {
  auto range = keys.range(options.key, options.prefix, options.range_end);
  if (!range) return fail(std::move(range.error()));
  Json body = Json::object();
  set_range(body, *range);
  set_nonzero(body, "limit", options.limit);
  set_nonzero(body, "revision", number(options.revision));
  if (options.order != SortOrder::kNone) body.set("sort_order", kOrders[static_cast<int>(options.order)]);
  if (options.sort_by != SortTarget::kKey) body.set("sort_target", kTargets[static_cast<int>(options.sort_by)]);
  set_true(body, "serializable", options.serializable);
  set_true(body, "keys_only", options.keys_only);
  set_true(body, "count_only", options.count_only);
  set_nonzero(body, "min_mod_revision", number(options.min_mod_revision));
  set_nonzero(body, "max_mod_revision", number(options.max_mod_revision));
  set_nonzero(body, "min_create_revision", number(options.min_create_revision));
  set_nonzero(body, "max_create_revision", number(options.max_create_revision));
  return body;
}

Result<Json> encode_put(std::string_view key, std::string_view value, const PutOptions& options, const KeySpace& keys) {
  auto range = keys.range(key, false, {});
  if (!range) return fail(std::move(range.error()));
  if (options.ignore_value && !value.empty()) return fail(Code::kInvalidArgument, "etcdserver: value is provided");
  if (options.ignore_lease && options.lease != LeaseId{})
    return fail(Code::kInvalidArgument, "etcdserver: lease is provided");
  Json body = Json::object();
  set_range(body, *range);
  if (!value.empty()) body.set("value", bytes(value));
  set_nonzero(body, "lease", number(options.lease));
  set_true(body, "prev_kv", options.prev_kv);
  set_true(body, "ignore_value", options.ignore_value);
  set_true(body, "ignore_lease", options.ignore_lease);
  return body;
}

Result<Json> encode_delete(std::string_view key, const DeleteOptions& options, const KeySpace& keys) {
  auto range = keys.range(key, options.prefix, options.range_end);
  if (!range) return fail(std::move(range.error()));
  Json body = Json::object();
  set_range(body, *range);
  set_true(body, "prev_kv", options.prev_kv);
  return body;
}

Json encode_compact(Revision revision, bool physical) {
  Json body = Json::object().set("revision", int64(number(revision)));
  set_true(body, "physical", physical);
  return body;
}

Result<Json> encode_watch(const WatchOptions& options, Revision from, const KeySpace& keys) {
  auto range = keys.range(options.key, options.prefix, options.range_end);
  if (!range) return fail(std::move(range.error()));
  Json create = Json::object();
  set_range(create, *range);
  set_nonzero(create, "start_revision", number(from));
  create.set("progress_notify", true);
  set_true(create, "prev_kv", options.prev_kv);
  Json filters = Json::array();
  if (!options.puts) filters.push("NOPUT");
  if (!options.deletes) filters.push("NODELETE");
  if (!filters.items().empty()) create.set("filters", std::move(filters));
  return Json::object().set("create_request", std::move(create));
}

RangeResult decode_range(const Json& answer, const KeySpace& keys) {
  RangeResult result{
      .more = answer["more"].boolean(), .count = answer["count"].integer(), .revision = header_revision(answer)};
  result.kvs.reserve(answer["kvs"].items().size());
  for (const Json& kv : answer["kvs"].items()) result.kvs.push_back(decode_kv(kv, keys));
  return result;
}

PutResult decode_put(const Json& answer, const KeySpace& keys) {
  PutResult result{.revision = header_revision(answer)};
  if (answer.has("prev_kv")) result.previous = decode_kv(answer["prev_kv"], keys);
  return result;
}

DeleteResult decode_delete(const Json& answer, const KeySpace& keys) {
  DeleteResult result{.revision = header_revision(answer), .deleted = answer["deleted"].integer()};
  for (const Json& kv : answer["prev_kvs"].items()) result.previous.push_back(decode_kv(kv, keys));
  return result;
}

Event decode_event(const Json& event, const KeySpace& keys) {
  Event result{.type = event["type"].text() == "DELETE" ? EventType::kDelete : EventType::kPut,
               .kv = decode_kv(event["kv"], keys)};
  if (event.has("prev_kv")) result.previous = decode_kv(event["prev_kv"], keys);
  return result;
}

ServerStatus decode_status(const Json& answer) {
  return {.version = answer["version"].text(),
          .cluster_id = header_cluster(answer),
          .member_id = answer["header"]["member_id"].unsigned_integer(),
          .leader_id = answer["leader"].unsigned_integer(),
          .revision = header_revision(answer),
          .database_bytes = answer["dbSize"].integer()};
}

std::optional<Error> decode_error(const Json& answer) {
  constexpr std::int64_t kLastCode = 16;
  const Json& error = answer["error"].is_object() ? answer["error"] : answer;
  const std::int64_t code = error["code"].integer();
  if (code < 1 || code > kLastCode || !error["message"].is_string()) return std::nullopt;
  Error result{.code = static_cast<Code>(code), .message = error["message"].text()};
  result.outcome = result.code == Code::kNotFound ? Outcome::kNeverWorks : usual_outcome(result.code);
  return result;
}

Revision header_revision(const Json& answer) { return Revision{answer["header"]["revision"].integer()}; }

std::uint64_t header_cluster(const Json& answer) {
  const Json& message = answer.has("result") ? answer["result"] : answer;
  return message["header"]["cluster_id"].unsigned_integer();
}

}  // namespace conclave::inline v1::internal
