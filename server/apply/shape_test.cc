#include "apply/shape.h"

#include <gtest/gtest.h>

#include "apply/build_test.h"

namespace apply {
namespace {

using namespace build;

constexpr size_t kOps = 128;

std::string text(const Status& status) {
  if (status) return "";
  EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  return status.error().message;
}
std::string txn_text(const TxnRequest& request, size_t max_txn_ops = kOps) {
  return text(check_txn(request, max_txn_ops));
}

TEST(Shape, Put) {
  EXPECT_EQ(text(check_put(put("a"))), "");
  EXPECT_EQ(text(check_put(put(""))), "etcdserver: key is not provided");
  EXPECT_EQ(text(check_put(keep_value("a", 7))), "");
  PutRequest both = keep_value("a");
  both.set_value("x");
  EXPECT_EQ(text(check_put(both)), "etcdserver: value is provided");
  EXPECT_EQ(text(check_put(keep_lease("a"))), "");
  both = keep_lease("a");
  both.set_lease(-1);
  EXPECT_EQ(text(check_put(both)), "etcdserver: lease is provided");
}

TEST(Shape, DeleteRange) {
  EXPECT_EQ(text(check_delete_range(erase("a", "b"))), "");
  EXPECT_EQ(text(check_delete_range(erase("", "b"))), "etcdserver: key is not provided");
}

TEST(Shape, Range) {
  EXPECT_EQ(text(check_range(range("a"))), "");
  EXPECT_EQ(text(check_range(range(""))), "etcdserver: key is not provided");
  RangeRequest request = range("a");
  request.set_sort_order(static_cast<RangeRequest::SortOrder>(9));
  EXPECT_EQ(text(check_range(request)), "etcdserver: invalid sort option");
  request = range("a");
  request.set_sort_target(static_cast<RangeRequest::SortTarget>(5));
  EXPECT_EQ(text(check_range(request)), "etcdserver: invalid sort option");
}

TEST(Shape, OperationsInsideATxn) {
  EXPECT_EQ(txn_text(txn({}, {})), "");
  EXPECT_EQ(txn_text(txn({}, {op(put(""))})), kErrorEmptyKey);
  EXPECT_EQ(txn_text(txn({}, {op(range(""))})), kErrorEmptyKey);
  EXPECT_EQ(txn_text(txn({}, {op(erase(""))})), kErrorEmptyKey);
  EXPECT_EQ(txn_text(txn({version_is("", Compare::EQUAL, 0)}, {})), kErrorEmptyKey);
  EXPECT_EQ(txn_text(txn({}, {RequestOp()})), "etcdserver: key not found");
  EXPECT_EQ(txn_text(txn({}, {}, {RequestOp()})), "etcdserver: key not found") << "also in the branch not taken";
  EXPECT_EQ(txn_text(txn({}, {op(txn({version_is("", Compare::EQUAL, 0)}, {}))})), kErrorEmptyKey);
  PutRequest both = keep_value("a");
  both.set_value("1");
  EXPECT_EQ(txn_text(txn({}, {op(both)})), kErrorValueProvided);
}

TxnRequest puts(int count, const std::string& prefix = "k") {
  TxnRequest request;
  for (int i = 0; i < count; ++i) *request.add_success() = op(put(prefix + std::to_string(i)));
  return request;
}

TEST(Shape, TooManyOperations) {
  EXPECT_EQ(txn_text(puts(128)), "");
  EXPECT_EQ(txn_text(puts(129)), "etcdserver: too many operations in txn request");
  TxnRequest request = puts(129);
  request.mutable_failure()->Swap(request.mutable_success());
  EXPECT_EQ(txn_text(request), kErrorTooManyOps);
  request.Clear();
  for (int i = 0; i < 128; ++i) *request.add_compare() = version_is("a", Compare::EQUAL, 1);
  *request.add_success() = op(erase("a", "b"));
  EXPECT_EQ(txn_text(request), "") << "the most of the three lists counts, not their sum";
  *request.add_compare() = version_is("a", Compare::EQUAL, 1);
  EXPECT_EQ(txn_text(request), kErrorTooManyOps);
  EXPECT_EQ(txn_text(puts(10), 10), "");
  EXPECT_EQ(txn_text(puts(11), 10), kErrorTooManyOps);
}

TEST(Shape, TheBudgetShrinksByLevel) {
  EXPECT_EQ(txn_text(txn({}, {op(puts(127))})), "");
  EXPECT_EQ(txn_text(txn({}, {op(puts(128))})), kErrorTooManyOps);
  EXPECT_EQ(txn_text(txn({}, {op(puts(126, "a")), op(puts(126, "b"))})), "");
  EXPECT_EQ(txn_text(txn({}, {op(puts(126, "a")), op(puts(127, "b"))})), kErrorTooManyOps);
  TxnRequest deep = txn({}, {});
  for (int level = 1; level < 129; ++level) deep = txn({}, {op(std::move(deep))});
  EXPECT_EQ(txn_text(deep), "");
  deep = txn({}, {op(std::move(deep))});
  EXPECT_EQ(txn_text(deep), kErrorTooManyOps);
  EXPECT_EQ(txn_text(deep, 1'000'000), kErrorTooManyOps) << "the stack is finite whatever the limit";
}

TEST(Shape, DuplicateKeys) {
  const std::string duplicate = "etcdserver: duplicate key given in txn request";
  EXPECT_EQ(txn_text(txn({}, {op(put("a")), op(put("b"))})), "");
  EXPECT_EQ(txn_text(txn({}, {op(put("a")), op(put("a"))})), duplicate);
  EXPECT_EQ(txn_text(txn({}, {op(put("a"))}, {op(put("b")), op(put("b"))})), duplicate);
  EXPECT_EQ(txn_text(txn({}, {op(put("a"))}, {op(put("a"))})), "") << "one branch runs only";
  EXPECT_EQ(txn_text(txn({}, {op(put("a")), op(erase("a"))})), duplicate);
  EXPECT_EQ(txn_text(txn({}, {op(erase("a", "c")), op(put("b"))})), duplicate);
  EXPECT_EQ(txn_text(txn({}, {op(erase("a", "c")), op(put("c"))})), "");
  EXPECT_EQ(txn_text(txn({}, {op(erase("a")), op(erase("a")), op(erase("", "z"))})), kErrorEmptyKey);
  EXPECT_EQ(txn_text(txn({}, {op(erase("a")), op(erase("a")), op(erase("A", "z"))})), "") << "deletes may overlap";
  EXPECT_EQ(txn_text(txn({}, {op(range("a")), op(put("a")), op(range("a"))})), "");
}

TEST(Shape, DuplicateKeysWithAnOpenEnd) {
  EXPECT_EQ(txn_text(txn({}, {op(erase("a", kOpenEnd)), op(put("b"))})), kErrorDuplicateKey);
  EXPECT_EQ(txn_text(txn({}, {op(put("b")), op(erase("a", kOpenEnd))})), kErrorDuplicateKey);
  EXPECT_EQ(txn_text(txn({}, {op(erase("c", kOpenEnd)), op(put("b"))})), "");
  EXPECT_EQ(txn_text(txn({}, {op(erase(kOpenEnd, kOpenEnd)), op(txn({}, {op(put("b"))}))})), kErrorDuplicateKey);
  EXPECT_EQ(txn_text(txn({}, {op(txn({}, {op(erase("a", kOpenEnd))})), op(put("b"))})), kErrorDuplicateKey);
}

TEST(Shape, DuplicateKeysAcrossLevels) {
  auto nested_put = op(txn({}, {op(put("a"))}));
  auto nested_erase = op(txn({}, {op(erase("a"))}));
  EXPECT_EQ(txn_text(txn({}, {op(put("a")), nested_put})), kErrorDuplicateKey);
  EXPECT_EQ(txn_text(txn({}, {nested_put, op(put("a"))})), kErrorDuplicateKey);
  EXPECT_EQ(txn_text(txn({}, {nested_put, nested_put})), kErrorDuplicateKey);
  EXPECT_EQ(txn_text(txn({}, {nested_put, op(erase("a"))})), kErrorDuplicateKey);
  EXPECT_EQ(txn_text(txn({}, {nested_erase, op(put("a"))})), kErrorDuplicateKey);
  EXPECT_EQ(txn_text(txn({}, {nested_erase, nested_put})), kErrorDuplicateKey) << "the delete comes first";
  EXPECT_EQ(txn_text(txn({}, {nested_put, nested_erase})), "") << "etcd lets a later nested delete pass";
  EXPECT_EQ(txn_text(txn({}, {op(txn({}, {op(put("a"))}, {op(put("a"))}))})), "");
  EXPECT_EQ(txn_text(txn({}, {op(txn({}, {op(put("a"))}, {op(put("a"))})), nested_put})), kErrorDuplicateKey);
  EXPECT_EQ(txn_text(txn({}, {op(txn({}, {}, {op(erase("a"))})), op(put("a"))})), kErrorDuplicateKey);
  EXPECT_EQ(txn_text(txn({}, {nested_put}, {nested_put})), "");
  EXPECT_EQ(txn_text(txn({}, {op(txn({}, {nested_put})), nested_put})), kErrorDuplicateKey) << "three levels";
}

TEST(Shape, ReadOnlyAndSerializable) {
  RangeRequest fast = range("a");
  fast.set_serializable(true);
  EXPECT_TRUE(is_read_only(txn({}, {})));
  EXPECT_TRUE(is_serializable(txn({}, {})));
  EXPECT_TRUE(is_read_only(txn({}, {op(range("a"))}, {op(txn({}, {op(fast)}))})));
  EXPECT_FALSE(is_serializable(txn({}, {op(range("a"))}, {op(txn({}, {op(fast)}))})));
  EXPECT_TRUE(is_serializable(txn({}, {op(fast)}, {op(txn({}, {op(fast)}))})));
  EXPECT_FALSE(is_read_only(txn({}, {op(range("a"))}, {op(put("a"))})));
  EXPECT_FALSE(is_read_only(txn({}, {op(txn({}, {op(erase("a"))}))})));
  EXPECT_FALSE(is_read_only(txn({}, {RequestOp()})));
}

}  // namespace
}  // namespace apply
