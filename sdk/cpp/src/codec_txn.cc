#include <utility>

#include "codec.h"

namespace conclave::inline v1::internal {

namespace {

constexpr const char* kResults[] = {"EQUAL", "GREATER", "LESS", "NOT_EQUAL"};
constexpr const char* kTargets[] = {"VERSION", "CREATE", "MOD", "VALUE", "LEASE"};
constexpr const char* kOperands[] = {"version", "create_revision", "mod_revision", "value", "lease"};

Result<Json> encode_compare(const Compare& compare, const KeySpace& keys) {
  auto range = keys.range(compare.key, compare.prefix, {});
  if (!range) return fail(std::move(range.error()));
  const auto target = static_cast<int>(compare.target);
  Json body = Json::object()
                  .set("key", base64_encode(range->key))
                  .set("target", kTargets[target])
                  .set("result", kResults[static_cast<int>(compare.result)]);
  if (!range->end.empty()) body.set("range_end", base64_encode(range->end));
  const auto* number = std::get_if<std::int64_t>(&compare.operand);
  const auto* text = std::get_if<std::string>(&compare.operand);
  if ((compare.target == CompareTarget::kValue) != (text != nullptr))
    return fail(Code::kInvalidArgument, "compare: the operand is not of the target's type");
  body.set(kOperands[target], number != nullptr ? int64(*number) : Json(base64_encode(*text)));
  return body;
}

bool untouched(const CallOptions& call) { return !call.timeout && !call.stop.stop_possible(); }

struct EncodeOp {
  const KeySpace& keys;

  Result<Json> operator()(const RangeOptions& options) const {
    return wrap("request_range", options.call, encode_range(options, keys));
  }
  Result<Json> operator()(const Op::Put& put) const {
    return wrap("request_put", put.options.call, encode_put(put.key, put.value, put.options, keys));
  }
  Result<Json> operator()(const Op::Delete& del) const {
    return wrap("request_delete_range", del.options.call, encode_delete(del.key, del.options, keys));
  }
  Result<Json> operator()(const std::shared_ptr<const Txn>& txn) const {
    return wrap("request_txn", {}, encode_txn(*txn, keys));
  }

  static Result<Json> wrap(const char* name, const CallOptions& call, Result<Json> body) {
    if (!body) return body;
    if (!untouched(call))
      return fail(Code::kInvalidArgument, "an operation of a transaction has no deadline of its own");
    return Json::object().set(name, std::move(*body));
  }
};

Result<Json> encode_ops(const std::vector<Op>& ops, const KeySpace& keys) {
  Json list = Json::array();
  for (const Op& op : ops) {
    auto encoded = std::visit(EncodeOp{keys}, op.what);
    if (!encoded) return encoded;
    list.push(std::move(*encoded));
  }
  return list;
}

}  // namespace

Result<Json> encode_txn(const Txn& txn, const KeySpace& keys) {
  Json compares = Json::array();
  for (const Compare& compare : txn.compares()) {
    auto encoded = encode_compare(compare, keys);
    if (!encoded) return encoded;
    compares.push(std::move(*encoded));
  }
  auto success = encode_ops(txn.then_ops(), keys);
  if (!success) return success;
  auto failure = encode_ops(txn.otherwise_ops(), keys);
  if (!failure) return failure;
  return Json::object()
      .set("compare", std::move(compares))
      .set("success", std::move(*success))
      .set("failure", std::move(*failure));
}

Result<TxnResult> decode_txn(const Json& answer, const KeySpace& keys) {
  TxnResult result;
  result.succeeded = answer["succeeded"].boolean();
  result.revision = header_revision(answer);
  for (const Json& item : answer["responses"].items()) {
    auto& value = result.results.emplace_back().value;  // filled in place: GCC 12 suspects a move of it
    if (item.has("response_range")) {
      value.emplace<RangeResult>(decode_range(item["response_range"], keys));
    } else if (item.has("response_put")) {
      value.emplace<PutResult>(decode_put(item["response_put"], keys));
    } else if (item.has("response_delete_range")) {
      value.emplace<DeleteResult>(decode_delete(item["response_delete_range"], keys));
    } else if (item.has("response_txn")) {
      auto inner = decode_txn(item["response_txn"], keys);
      if (!inner) return inner;
      inner->revision = result.revision;  // a nested answer carries none
      value.emplace<TxnResult>(std::move(*inner));
    } else {
      return fail(Code::kInternal, "the server's answer to the transaction is not understood",
                  Outcome::kMayHaveHappened);
    }
  }
  return result;
}

}  // namespace conclave::inline v1::internal
