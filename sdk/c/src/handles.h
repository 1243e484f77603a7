// The handles that more than one file sees.
#pragma once

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "binding.h"
#include "conclave/client.h"
#include "conclave/session.h"
#include "conclave/txn.h"
#include "conclave_c/session.h"
#include "conclave_c/txn.h"

struct conclave_client {
  conclave::Client client;
};

struct conclave_session {
  conclave::Session session;
};

// The keys and what points into them. It does not move: `views` would stay behind.
struct conclave_kv_result {
  conclave_kv_result(std::vector<conclave::KeyValue> found, conclave::Revision at, std::int64_t how_many,
                     bool more_left)
      : kvs(std::move(found)), revision(at), count(how_many), more(more_left) {
    views.reserve(kvs.size());
    for (const conclave::KeyValue& kv : kvs) views.push_back(conclave::c::borrow(kv));
  }
  conclave_kv_result(const conclave_kv_result&) = delete;
  conclave_kv_result& operator=(const conclave_kv_result&) = delete;

  const std::vector<conclave::KeyValue> kvs;
  std::vector<conclave_key_value> views;
  conclave::Revision revision;
  std::int64_t count;
  bool more;
};

struct conclave_txn {
  conclave::Txn txn;
  std::optional<conclave::Error> bad;  // the first argument that made no sense
};

namespace conclave::c {

std::unique_ptr<conclave_kv_result> result_of(RangeResult found);
std::unique_ptr<conclave_kv_result> result_of(PutResult stored);
std::unique_ptr<conclave_kv_result> result_of(DeleteResult gone);

conclave_txn_result* result_of(TxnResult done);

}  // namespace conclave::c
