#include "rpc/range_read.h"

#include <gtest/gtest.h>

#include <random>

#include "mvcc/member_test.h"

namespace rpc {
namespace {

using etcdserverpb::RangeRequest;
using etcdserverpb::RangeResponse;

std::shared_ptr<const RangeRequest> shared(RangeRequest request) {
  return std::make_shared<const RangeRequest>(std::move(request));
}

class RangeReadTest : public testing::Test {
 protected:
  // In as many pieces as it takes, each with a reader of its own.
  Result<RangeResponse> read(RangeRead& range, int keys_max) {
    RangeResponse whole;
    for (pieces_ = 1;; ++pieces_) {
      RangeResponse part;
      TRY_ASSIGN(const bool last, range.next(*member_.mvcc().reader(), keys_max, &part));
      if (between_) between_(part);
      EXPECT_EQ(part.has_header(), pieces_ == 1);
      EXPECT_TRUE(last || (part.count() == 0 && !part.more()));
      EXPECT_TRUE(last || part.kvs_size() > 0) << "each makes some way";
      whole.MergeFrom(part);
      if (last) return whole;
    }
  }
  Result<RangeResponse> at_once(const RangeRequest& request) {
    RangeResponse whole;
    const auto reader = member_.mvcc().reader();
    TRY(reader->range(request, &whole));
    whole.mutable_header()->set_revision(reader->at().revision);
    return whole;
  }

  mvcc::Member member_;
  std::function<void(const RangeResponse&)> between_;
  int pieces_ = 0;
};

RangeRequest random_request(std::mt19937& random, int64_t revision) {
  const auto pick = [&](int64_t max) { return static_cast<int64_t>(random() % static_cast<uint64_t>(max + 1)); };
  RangeRequest request;
  request.set_key("k" + std::to_string(100 + pick(300)));
  request.set_range_end(pick(3) == 0 ? std::string(1, '\0') : "k" + std::to_string(100 + pick(320)));
  if (pick(9) == 0) request.clear_range_end();
  if (pick(2) == 0) request.set_limit(pick(300));
  if (pick(3) == 0) request.set_revision(1 + pick(revision - 1));
  if (pick(2) == 0) request.set_sort_order(static_cast<RangeRequest::SortOrder>(pick(2)));
  if (pick(2) == 0) request.set_sort_target(static_cast<RangeRequest::SortTarget>(pick(4)));
  if (pick(5) == 0) request.set_keys_only(true);
  if (pick(9) == 0) request.set_count_only(true);
  if (pick(5) == 0) request.set_min_mod_revision(pick(revision));
  if (pick(5) == 0) request.set_max_create_revision(pick(revision));
  return request;
}

TEST_F(RangeReadTest, AnyRangeIsTheSameInPieces) {
  std::mt19937 random(7);
  for (int i = 0; i < 700; ++i) {
    const size_t size = random() % 20 == 0 ? 100'000 : random() % 2000;
    const std::string key = "k" + std::to_string(100 + random() % 300);
    if (i % 10 == 9) {
      member_.erase(key);
    } else {
      member_.put(key, std::string(size, static_cast<char>('a' + i % 26)), i % 3);
    }
  }
  const int64_t revision = member_.mvcc().published().revision;
  int most = 0;
  for (int i = 0; i < 3000; ++i) {
    const RangeRequest request = random_request(random, revision);
    RangeRead range(shared(request));
    const auto pieces = read(range, 1 + static_cast<int>(random() % 64));
    const auto whole = at_once(request);
    ASSERT_TRUE(pieces && whole);
    ASSERT_EQ(pieces->SerializeAsString(), whole->SerializeAsString()) << request.ShortDebugString();
    most = std::max(most, pieces_);
  }
  EXPECT_GT(most, 20);
}

TEST_F(RangeReadTest, ManyKeysAreListedInBlocks) {
  member_.batch([&](mvcc::Writer& writer) {
    writer.begin_revision();
    for (int i = 0; i < 40'000; ++i) ASSERT_TRUE(writer.put("k" + std::to_string(i), "v", 0, false));
    writer.end_revision();
  });
  RangeRequest request;
  request.set_key("k");
  request.set_range_end("l");
  for (const bool keys_only : {false, true}) {
    request.set_keys_only(keys_only);
    RangeRead range(shared(request));
    const auto pieces = read(range, 4096);
    ASSERT_TRUE(pieces);
    EXPECT_EQ(pieces->SerializeAsString(), at_once(request)->SerializeAsString());
    EXPECT_GE(pieces_, 3);
  }
}

TEST_F(RangeReadTest, APageIsNoLargerThanItsKeysAllow) {
  for (int i = 0; i < 100; ++i) member_.put("a" + std::to_string(100 + i), "");
  for (int i = 0; i < 100; ++i) member_.put("b" + std::to_string(100 + i), std::string(100'000, 'v'));
  RangeRequest request;
  request.set_key("a");
  request.set_range_end("c");
  size_t most = 0;
  between_ = [&](const RangeResponse& part) { most = std::max(most, part.ByteSizeLong()); };
  RangeRead range(shared(request));
  ASSERT_TRUE(read(range, 16));
  EXPECT_LE(most, 16 * 100'100u);
  EXPECT_GE(pieces_, 100 / 16 + 100 / 3);
}

TEST_F(RangeReadTest, AllIsReadAtTheFirstPiecesRevision) {
  for (int i = 0; i < 50; ++i) member_.put("k" + std::to_string(100 + i), std::string(100'000, 'v'));
  RangeRequest request;
  request.set_key("k");
  request.set_range_end("l");
  const auto before = at_once(request);
  between_ = [&](const RangeResponse&) {
    member_.put("k100", "new");
    member_.put("k1" + std::to_string(pieces_), "new");
    member_.put("k149", "new");
  };
  RangeRead range(shared(request));
  const auto pieces = read(range, 4);
  ASSERT_TRUE(pieces);
  EXPECT_EQ(pieces->SerializeAsString(), before->SerializeAsString());
}

TEST_F(RangeReadTest, ACompactionThatPassesEndsItAndItCanBeginAgain) {
  for (int i = 0; i < 50; ++i) member_.put("k" + std::to_string(100 + i), std::string(100'000, 'v'));
  RangeRequest request;
  request.set_key("k");
  request.set_range_end("l");
  RangeRead range(shared(request));
  between_ = [&](const RangeResponse&) {
    if (pieces_ != 3) return;
    member_.put("k140", "new");
    member_.publish_compaction(member_.mvcc().published().revision);
  };
  const auto cut = read(range, 4);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().message, mvcc::kErrorCompacted);
  between_ = nullptr;
  range.restart();
  const auto pieces = read(range, 4);
  ASSERT_TRUE(pieces);
  EXPECT_EQ(pieces->SerializeAsString(), at_once(request)->SerializeAsString());

  request.set_revision(5);
  RangeRead old(shared(request));
  EXPECT_EQ(read(old, 4).error().message, mvcc::kErrorCompacted);
  old.restart();
  EXPECT_EQ(read(old, 4).error().message, mvcc::kErrorCompacted);
  request.set_revision(1'000'000);
  RangeRead future(shared(request));
  EXPECT_EQ(read(future, 4).error().message, mvcc::kErrorFutureRevision);
}

}  // namespace
}  // namespace rpc
