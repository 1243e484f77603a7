// Short histories by hand, for tests. Times in milliseconds.
#pragma once

#include "history/history.h"

namespace history {

inline Time ms(int64_t count) { return std::chrono::milliseconds(count); }

inline Operation answered(int64_t call, int64_t returned, int64_t revision) {
  Operation operation{.call = ms(call), .returned = ms(returned), .outcome = Outcome::kOk, .revision = revision};
  operation.answers.resize(1);
  return operation;
}
inline Operation put(int64_t call, int64_t returned, const std::string& key, const std::string& value,
                     int64_t revision = 0) {
  Operation operation = answered(call, returned, revision);
  operation.success = {{.kind = Request::Kind::kPut, .key = key, .value = value}};
  return operation;
}
inline Operation unknown(Operation operation) {
  operation.outcome = Outcome::kUnknown;
  operation.returned = kNever;
  operation.revision = 0;
  operation.answers.clear();
  return operation;
}
inline KeyValue kv(const std::string& key, const std::string& value, int64_t mod = 0, int64_t create = 0,
                   int64_t version = 0) {
  return {key, value, create, mod, version, 0};
}
inline Operation get(int64_t call, int64_t returned, const std::string& key, std::vector<KeyValue> found,
                     int64_t revision = 0) {
  Operation operation = answered(call, returned, revision);
  operation.success = {{.kind = Request::Kind::kGet, .key = key}};
  operation.answers[0].kvs = std::move(found);
  return operation;
}
inline Operation erase(int64_t call, int64_t returned, const std::string& key, int64_t deleted, int64_t revision = 0) {
  Operation operation = answered(call, returned, revision);
  operation.success = {{.kind = Request::Kind::kDelete, .key = key}};
  operation.answers[0].deleted = deleted;
  return operation;
}
// Puts `value` if the key has `expected`.
inline Operation swap(int64_t call, int64_t returned, const std::string& key, const std::string& expected,
                      const std::string& value, bool succeeded, int64_t revision = 0) {
  Operation operation = answered(call, returned, revision);
  operation.compares = {{.key = key, .target = Compare::Target::kValue, .value = expected}};
  operation.success = {{.kind = Request::Kind::kPut, .key = key, .value = value}};
  operation.succeeded = succeeded;
  if (!succeeded) operation.answers.clear();
  return operation;
}

}  // namespace history
