// A transaction: compares, then one of two lists of operations, all at one revision.
//
//   conclave_txn* txn = conclave_txn_new();
//   conclave_txn_when(txn, CONCLAVE_COMPARE_CREATE, CONCLAVE_STR("k"), CONCLAVE_EQUAL, 0);
//   conclave_txn_put(txn, CONCLAVE_THEN, CONCLAVE_STR("k"), CONCLAVE_STR("v"), 0);
//   conclave_commit(client, txn, -1, NULL, &result, &error);
#ifndef CONCLAVE_C_TXN_H
#define CONCLAVE_C_TXN_H

#include "conclave_c/kv.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct conclave_txn conclave_txn;

typedef int32_t conclave_compare_target;
enum {
  CONCLAVE_COMPARE_VERSION = 0,
  CONCLAVE_COMPARE_CREATE = 1,  // create revision; 0: the key does not exist
  CONCLAVE_COMPARE_MOD = 2,
  CONCLAVE_COMPARE_LEASE = 4
};

typedef int32_t conclave_relation;
enum { CONCLAVE_EQUAL = 0, CONCLAVE_GREATER = 1, CONCLAVE_LESS = 2, CONCLAVE_NOT_EQUAL = 3 };

typedef int32_t conclave_branch;
enum {
  CONCLAVE_THEN = 0,      // runs when all compares hold
  CONCLAVE_OTHERWISE = 1  // runs when one does not
};

CONCLAVE_API conclave_txn* conclave_txn_new(void);
CONCLAVE_API void conclave_txn_free(conclave_txn* txn);

// Each copies what it is given. What is not one of the values above makes the commit fail.
CONCLAVE_API void conclave_txn_when(conclave_txn* txn, conclave_compare_target target, conclave_str key,
                                    conclave_relation relation, int64_t number);
CONCLAVE_API void conclave_txn_when_value(conclave_txn* txn, conclave_str key, conclave_relation relation,
                                          conclave_str value);
CONCLAVE_API void conclave_txn_put(conclave_txn* txn, conclave_branch branch, conclave_str key, conclave_str value,
                                   int64_t lease);
CONCLAVE_API void conclave_txn_delete(conclave_txn* txn, conclave_branch branch, conclave_str key, int prefix);
CONCLAVE_API void conclave_txn_get(conclave_txn* txn, conclave_branch branch, conclave_str key, int prefix);

typedef struct conclave_txn_result conclave_txn_result;
CONCLAVE_API int conclave_txn_result_succeeded(const conclave_txn_result* result);  // CONCLAVE_THEN ran
CONCLAVE_API int64_t conclave_txn_result_revision(const conclave_txn_result* result);
CONCLAVE_API size_t conclave_txn_result_size(const conclave_txn_result* result);  // operations of the branch that ran
// Of one operation; NULL from _size on. Belongs to `result`: not to be freed.
CONCLAVE_API const conclave_kv_result* conclave_txn_result_at(const conclave_txn_result* result, size_t index);
CONCLAVE_API void conclave_txn_result_free(conclave_txn_result* result);

// `txn` can be committed again. `result` may be NULL.
CONCLAVE_API conclave_code conclave_commit(conclave_client* client, const conclave_txn* txn, int64_t timeout_ms,
                                           conclave_stop* stop, conclave_txn_result** result, conclave_error* error);

#ifdef __cplusplus
}
#endif

#endif
