// A transaction: compares, then one of two lists of operations, all at one revision.
//
//   Txn txn;
//   txn.when(compare::create_revision("k") == 0).then(op::put("k", "v")).otherwise(op::get("k"));
//   auto result = client.commit(txn);  // result->succeeded, result->results
//
// The `call` members of the options given to operations must be left alone: a transaction has one deadline, commit's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "conclave/kv.h"
#include "conclave/types.h"

namespace conclave {
inline namespace v1 {

class Txn;

enum class CompareResult : std::uint8_t { kEqual, kGreater, kLess, kNotEqual };
enum class CompareTarget : std::uint8_t { kVersion, kCreate, kMod, kValue, kLease };

// One condition. Made by the functions of `compare` and an operator (==, !=, <, >).
struct Compare {
  CompareTarget target = CompareTarget::kVersion;
  CompareResult result = CompareResult::kEqual;
  std::string key = {};
  std::variant<std::int64_t, std::string> operand = std::int64_t{0};
  bool prefix = false;  // true: holds if it holds for every key that begins with `key`
};

namespace compare {

template <class Operand>
struct Subject {
  CompareTarget target;
  std::string key;
  bool prefix = false;

  // The condition must hold for every key that begins with this one.
  Subject all_with_prefix() && {
    prefix = true;
    return std::move(*this);
  }

  friend Compare operator==(Subject s, Operand o) { return std::move(s).with(CompareResult::kEqual, std::move(o)); }
  friend Compare operator!=(Subject s, Operand o) { return std::move(s).with(CompareResult::kNotEqual, std::move(o)); }
  friend Compare operator<(Subject s, Operand o) { return std::move(s).with(CompareResult::kLess, std::move(o)); }
  friend Compare operator>(Subject s, Operand o) { return std::move(s).with(CompareResult::kGreater, std::move(o)); }

 private:
  Compare with(CompareResult result, Operand operand) && {
    return {.target = target, .result = result, .key = std::move(key), .operand = std::move(operand), .prefix = prefix};
  }
};

inline Subject<std::int64_t> create_revision(std::string key) { return {CompareTarget::kCreate, std::move(key)}; }
inline Subject<std::int64_t> mod_revision(std::string key) { return {CompareTarget::kMod, std::move(key)}; }
inline Subject<std::int64_t> version(std::string key) { return {CompareTarget::kVersion, std::move(key)}; }
inline Subject<std::int64_t> lease(std::string key) { return {CompareTarget::kLease, std::move(key)}; }
inline Subject<std::string> value(std::string key) { return {CompareTarget::kValue, std::move(key)}; }

inline Compare operator==(Subject<std::int64_t> s, Revision r) { return std::move(s) == number(r); }
inline Compare operator!=(Subject<std::int64_t> s, Revision r) { return std::move(s) != number(r); }
inline Compare operator<(Subject<std::int64_t> s, Revision r) { return std::move(s) < number(r); }
inline Compare operator>(Subject<std::int64_t> s, Revision r) { return std::move(s) > number(r); }
inline Compare operator==(Subject<std::int64_t> s, LeaseId l) { return std::move(s) == number(l); }
inline Compare operator!=(Subject<std::int64_t> s, LeaseId l) { return std::move(s) != number(l); }

// Holds if the key does (not) exist.
inline Compare exists(std::string key) { return create_revision(std::move(key)) > 0; }
inline Compare missing(std::string key) { return create_revision(std::move(key)) == 0; }

}  // namespace compare

// One operation of a transaction. Made by the functions of `op`.
struct Op {
  struct Put {
    std::string key = {};
    std::string value = {};
    PutOptions options = {};
  };
  struct Delete {
    std::string key = {};
    DeleteOptions options = {};
  };
  std::variant<RangeOptions, Put, Delete, std::shared_ptr<const Txn>> what;
};

class Txn {
 public:
  template <class... Compares>
  Txn& when(Compares... compares) {
    (compares_.push_back(std::move(compares)), ...);
    return *this;
  }
  template <class... Ops>
  Txn& then(Ops... ops) {
    (then_.push_back(std::move(ops)), ...);
    return *this;
  }
  template <class... Ops>
  Txn& otherwise(Ops... ops) {
    (otherwise_.push_back(std::move(ops)), ...);
    return *this;
  }

  const std::vector<Compare>& compares() const { return compares_; }
  const std::vector<Op>& then_ops() const { return then_; }
  const std::vector<Op>& otherwise_ops() const { return otherwise_; }

 private:
  std::vector<Compare> compares_;
  std::vector<Op> then_;
  std::vector<Op> otherwise_;
};

namespace op {
inline Op get(std::string key) { return {RangeOptions{.key = std::move(key)}}; }
inline Op range(RangeOptions options) { return {std::move(options)}; }
inline Op put(std::string key, std::string value, PutOptions options = {}) {
  return {Op::Put{std::move(key), std::move(value), std::move(options)}};
}
inline Op del(std::string key, DeleteOptions options = {}) { return {Op::Delete{std::move(key), std::move(options)}}; }
// A transaction inside: its compares are all evaluated before any operation of the outer one runs.
inline Op txn(Txn inner) { return {std::make_shared<const Txn>(std::move(inner))}; }
}  // namespace op

struct OpResult;

struct TxnResult {
  bool succeeded = false;  // whether the compares held: `then` ran; else `otherwise`
  Revision revision{};
  std::vector<OpResult> results;  // one for each operation of the branch that ran
};

struct OpResult {
  std::variant<RangeResult, PutResult, DeleteResult, TxnResult> value;
  // Null when the operation was of another kind.
  const RangeResult* range() const { return std::get_if<RangeResult>(&value); }
  const PutResult* put() const { return std::get_if<PutResult>(&value); }
  const DeleteResult* del() const { return std::get_if<DeleteResult>(&value); }
  const TxnResult* txn() const { return std::get_if<TxnResult>(&value); }
};

}  // namespace v1
}  // namespace conclave
