// Short ways to write requests in tests.
#pragma once

#include <initializer_list>
#include <string>

#include "api/rpc.pb.h"

namespace apply::build {

using etcdserverpb::Compare;
using etcdserverpb::DeleteRangeRequest;
using etcdserverpb::PutRequest;
using etcdserverpb::RangeRequest;
using etcdserverpb::RequestOp;
using etcdserverpb::TxnRequest;

inline const std::string kOpenEnd(1, '\0');

inline PutRequest put(const std::string& key, const std::string& value = "v", int64_t lease = 0) {
  PutRequest request;
  request.set_key(key);
  request.set_value(value);
  request.set_lease(lease);
  return request;
}
inline PutRequest with_previous(PutRequest request) {
  request.set_prev_kv(true);
  return request;
}
inline PutRequest keep_value(const std::string& key, int64_t lease = 0) {
  PutRequest request = put(key, "", lease);
  request.set_ignore_value(true);
  return request;
}
inline PutRequest keep_lease(const std::string& key, const std::string& value = "v") {
  PutRequest request = put(key, value);
  request.set_ignore_lease(true);
  return request;
}
inline DeleteRangeRequest erase(const std::string& key, const std::string& end = "", bool previous = false) {
  DeleteRangeRequest request;
  request.set_key(key);
  request.set_range_end(end);
  request.set_prev_kv(previous);
  return request;
}
inline RangeRequest range(const std::string& key, const std::string& end = "", int64_t revision = 0) {
  RangeRequest request;
  request.set_key(key);
  request.set_range_end(end);
  request.set_revision(revision);
  return request;
}

inline RequestOp op(PutRequest request) {
  RequestOp operation;
  *operation.mutable_request_put() = std::move(request);
  return operation;
}
inline RequestOp op(DeleteRangeRequest request) {
  RequestOp operation;
  *operation.mutable_request_delete_range() = std::move(request);
  return operation;
}
inline RequestOp op(RangeRequest request) {
  RequestOp operation;
  *operation.mutable_request_range() = std::move(request);
  return operation;
}
inline RequestOp op(TxnRequest request) {
  RequestOp operation;
  *operation.mutable_request_txn() = std::move(request);
  return operation;
}

using Compares = std::initializer_list<Compare>;
using Operations = std::initializer_list<RequestOp>;
inline TxnRequest txn(Compares compares, Operations success, Operations failure = {}) {
  TxnRequest request;
  for (const Compare& compare : compares) *request.add_compare() = compare;
  for (const RequestOp& operation : success) *request.add_success() = operation;
  for (const RequestOp& operation : failure) *request.add_failure() = operation;
  return request;
}

inline Compare compare(Compare::CompareTarget target, const std::string& key, Compare::CompareResult result,
                       const std::string& end = "") {
  Compare made;
  made.set_target(target);
  made.set_key(key);
  made.set_result(result);
  made.set_range_end(end);
  return made;
}
inline Compare version_is(const std::string& key, Compare::CompareResult result, int64_t operand,
                          const std::string& end = "") {
  Compare made = compare(Compare::VERSION, key, result, end);
  made.set_version(operand);
  return made;
}
inline Compare create_is(const std::string& key, Compare::CompareResult result, int64_t operand) {
  Compare made = compare(Compare::CREATE, key, result);
  made.set_create_revision(operand);
  return made;
}
inline Compare mod_is(const std::string& key, Compare::CompareResult result, int64_t operand,
                      const std::string& end = "") {
  Compare made = compare(Compare::MOD, key, result, end);
  made.set_mod_revision(operand);
  return made;
}
inline Compare lease_is(const std::string& key, Compare::CompareResult result, int64_t operand,
                        const std::string& end = "") {
  Compare made = compare(Compare::LEASE, key, result, end);
  made.set_lease(operand);
  return made;
}
inline Compare value_is(const std::string& key, Compare::CompareResult result, const std::string& operand,
                        const std::string& end = "") {
  Compare made = compare(Compare::VALUE, key, result, end);
  made.set_value(operand);
  return made;
}

}  // namespace apply::build
