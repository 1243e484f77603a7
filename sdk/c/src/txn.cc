#include "conclave_c/txn.h"

#include <memory>

#include "binding.h"
#include "handles.h"

using namespace conclave::c;
using conclave::fail;
using conclave::Status;

struct conclave_txn_result {
  bool succeeded = false;
  conclave::Revision revision{};
  std::vector<std::unique_ptr<conclave_kv_result>> results;
};

namespace {

static_assert(static_cast<int>(conclave::CompareTarget::kLease) == CONCLAVE_COMPARE_LEASE);
static_assert(static_cast<int>(conclave::CompareResult::kNotEqual) == CONCLAVE_NOT_EQUAL);

void refuse(conclave_txn& txn, std::string why) {
  if (!txn.bad) txn.bad = fail(conclave::Code::kInvalidArgument, std::move(why)).value();
}

void when(conclave_txn& txn, conclave::CompareTarget target, conclave_relation relation, conclave_str key,
          std::variant<std::int64_t, std::string> operand) {
  auto result = enum_of(relation, conclave::CompareResult::kNotEqual, "relation");
  if (!result) return refuse(txn, result.error().message);
  txn.txn.when(conclave::Compare{.target = target, .result = *result, .key = text(key), .operand = std::move(operand)});
}

void add(conclave_txn& txn, conclave_branch branch, conclave::Op op) {
  if (branch == CONCLAVE_THEN) {
    txn.txn.then(std::move(op));
  } else if (branch == CONCLAVE_OTHERWISE) {
    txn.txn.otherwise(std::move(op));
  } else {
    refuse(txn, "branch: " + std::to_string(branch) + " is no value of it");
  }
}

}  // namespace

namespace conclave::c {

conclave_txn_result* result_of(TxnResult done) {
  auto result = std::make_unique<conclave_txn_result>();
  result->succeeded = done.succeeded;
  result->revision = done.revision;
  for (OpResult& one : done.results) {
    if (auto* range = std::get_if<RangeResult>(&one.value)) {
      result->results.push_back(result_of(std::move(*range)));
    } else if (auto* put = std::get_if<PutResult>(&one.value)) {
      result->results.push_back(result_of(std::move(*put)));
    } else if (auto* gone = std::get_if<DeleteResult>(&one.value)) {
      result->results.push_back(result_of(std::move(*gone)));
    }
  }
  return result.release();
}

}  // namespace conclave::c

conclave_txn* conclave_txn_new() { return new conclave_txn; }
void conclave_txn_free(conclave_txn* txn) { delete txn; }

void conclave_txn_when(conclave_txn* txn, conclave_compare_target target, conclave_str key, conclave_relation relation,
                       int64_t number) {
  if (txn == nullptr) return;
  auto what = enum_of(target, conclave::CompareTarget::kLease, "target");
  if (!what || *what == conclave::CompareTarget::kValue) return refuse(*txn, "target: is no number of a key");
  when(*txn, *what, relation, key, number);
}

void conclave_txn_when_value(conclave_txn* txn, conclave_str key, conclave_relation relation, conclave_str value) {
  if (txn != nullptr) when(*txn, conclave::CompareTarget::kValue, relation, key, text(value));
}

void conclave_txn_put(conclave_txn* txn, conclave_branch branch, conclave_str key, conclave_str value, int64_t lease) {
  if (txn != nullptr) add(*txn, branch, conclave::op::put(text(key), text(value), {.lease = conclave::LeaseId{lease}}));
}

void conclave_txn_delete(conclave_txn* txn, conclave_branch branch, conclave_str key, int prefix) {
  if (txn != nullptr) add(*txn, branch, conclave::op::del(text(key), {.prefix = prefix != 0}));
}

void conclave_txn_get(conclave_txn* txn, conclave_branch branch, conclave_str key, int prefix) {
  if (txn != nullptr) add(*txn, branch, conclave::op::range({.key = text(key), .prefix = prefix != 0}));
}

conclave_code conclave_commit(conclave_client* client, const conclave_txn* txn, int64_t timeout_ms, conclave_stop* stop,
                              conclave_txn_result** result, conclave_error* error) {
  if (result != nullptr) *result = nullptr;
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"client", client}, {"txn", txn}}); !given) return given;
    if (txn->bad) return fail(*txn->bad);
    auto done = client->client.commit(txn->txn, call_of(timeout_ms, stop));
    if (!done) return fail(std::move(done.error()));
    if (result != nullptr) *result = result_of(std::move(*done));
    return {};
  });
}

int conclave_txn_result_succeeded(const conclave_txn_result* result) { return result != nullptr && result->succeeded; }
int64_t conclave_txn_result_revision(const conclave_txn_result* result) {
  return result != nullptr ? number(result->revision) : 0;
}
size_t conclave_txn_result_size(const conclave_txn_result* result) {
  return result != nullptr ? result->results.size() : 0;
}
const conclave_kv_result* conclave_txn_result_at(const conclave_txn_result* result, size_t index) {
  return result != nullptr && index < result->results.size() ? result->results[index].get() : nullptr;
}
void conclave_txn_result_free(conclave_txn_result* result) { delete result; }
