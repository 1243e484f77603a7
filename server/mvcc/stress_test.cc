// One writer, two readers, compaction on. Whatever step a reader is at, three facts hold in every revision R:
// `counter` was written in R; exactly one token exists; each pair left/i, right/i was written in one revision.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "mvcc/member_test.h"

namespace mvcc {
namespace {

constexpr int kPairs = 40;
constexpr int kBatches = 1500;
constexpr int64_t kKeep = 60;  // revisions that compaction leaves

std::string value_at(std::string_view key, int64_t revision) {
  return std::string(key) + "@" + std::to_string(revision);
}

void write(Member& member, std::mt19937_64& random) {
  const auto put = [](Writer& writer, const std::string& key, int64_t revision) {
    ASSERT_TRUE(writer.put(key, value_at(key, revision), 0, false));
  };
  for (int i = 0; i < kBatches; ++i) {
    member.fail_commit = random() % 16 == 0;
    member.batch([&](Writer& writer) {
      for (uint64_t n = 1 + random() % 3; n > 0; --n) {
        writer.begin_revision();
        const int64_t revision = writer.revision() + 1;
        put(writer, "counter", revision);
        const std::string pair = std::to_string(random() % kPairs);
        put(writer, "left/" + pair, revision);
        put(writer, "right/" + pair, revision);
        ASSERT_TRUE(writer.erase("token/", "token0", nullptr, nullptr));
        put(writer, "token/" + std::to_string(random() % 10), revision);
        writer.end_revision();
      }
    });
    const Published now = member.mvcc().published();
    if (i % 10 == 9 && now.revision - kKeep > std::max<int64_t>(1, now.compacted)) {
      member.fail_commit = false;
      member.publish_compaction(now.revision - kKeep);
    }
    member.fail_commit = random() % 16 == 0;
    member.compact_step(12);
  }
}

void check_state(const etcdserverpb::RangeResponse& response, int64_t revision) {
  int tokens = 0;
  int64_t counter = 0;
  std::map<std::string, int64_t> left;
  std::map<std::string, int64_t> right;
  for (const auto& kv : response.kvs()) {
    ASSERT_EQ(kv.value(), value_at(kv.key(), kv.mod_revision()));
    ASSERT_LE(kv.mod_revision(), revision);
    if (kv.key() == "counter") counter = kv.mod_revision();
    if (kv.key().starts_with("token/")) ++tokens;
    if (kv.key().starts_with("left/")) left[kv.key().substr(5)] = kv.mod_revision();
    if (kv.key().starts_with("right/")) right[kv.key().substr(6)] = kv.mod_revision();
  }
  ASSERT_EQ(response.count(), response.kvs_size());
  ASSERT_EQ(counter, revision);
  ASSERT_EQ(tokens, 1);
  ASSERT_EQ(left, right);
}

void read_once(Mvcc& mvcc, std::mt19937_64& random, int64_t* seen) {
  const auto reader = mvcc.reader();
  ASSERT_GE(reader->at().revision, *seen);
  if (reader->at().revision == 1) return;
  for (int pause = static_cast<int>(random() % 4); pause > 0; --pause) std::this_thread::yield();

  etcdserverpb::RangeRequest request;
  etcdserverpb::RangeResponse response;
  request.set_key(std::string(1, '\0'));
  request.set_range_end(std::string(1, '\0'));
  ASSERT_TRUE(reader->range(request, &response));
  ASSERT_NO_FATAL_FAILURE(check_state(response, reader->at().revision));

  const auto counter = mvcc.reader()->get("counter", 0);
  ASSERT_TRUE(counter && *counter);
  ASSERT_GE((*counter)->mod_revision, *seen);
  *seen = reader->at().revision;

  // An old revision: right, or compacted and then truly so.
  const int64_t back = static_cast<int64_t>(random() % (kKeep * 2));
  const int64_t old = std::max<int64_t>(2, reader->at().revision - back);
  request.set_revision(old);
  request.set_keys_only(random() % 2 == 0);
  response.Clear();
  const Status status = reader->range(request, &response);
  if (status && !request.keys_only()) {
    ASSERT_NO_FATAL_FAILURE(check_state(response, old));
  }
  if (!status) {
    ASSERT_EQ(status.error().message, kErrorCompacted);
    ASSERT_LT(old, mvcc.published().compacted);
  }

  int64_t next = old;
  const Status history = mvcc.reader()->history(
      old, old + 20, [](std::string_view key) { return key == "counter"; },
      [&](EventBatch batch) {
        EXPECT_EQ(batch.revision, next++);
        EXPECT_EQ(batch.events.size(), 1u);
        return !testing::Test::HasFailure();
      });
  if (!history) {
    ASSERT_LT(old, mvcc.published().compacted);
  }
}

class Stress : public testing::TestWithParam<StoreKind> {};
INSTANTIATE_TEST_SUITE_P(Stores, Stress, testing::Values(StoreKind::kFake, StoreKind::kReal));

TEST_P(Stress, ReadersSeeOneRevisionWholeUnderWritesAndCompaction) {
  for (const uint64_t cache_bytes : {uint64_t{0}, uint64_t{96} << 10}) {
    Options options;
    options.cache_bytes = cache_bytes;
    Member member(options, GetParam());
    std::atomic<bool> done = false;
    std::vector<std::thread> readers;
    std::atomic<int64_t> reads = 0;
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      readers.emplace_back([&, seed] {
        std::mt19937_64 random(seed);
        int64_t seen = 1;
        while (!done && !testing::Test::HasFailure()) {
          read_once(member.mvcc(), random, &seen);
          ++reads;
        }
      });
    }
    std::mt19937_64 random(7);
    write(member, random);
    done = true;
    for (std::thread& reader : readers) reader.join();
    EXPECT_GT(reads, 0);
    EXPECT_GT(member.mvcc().published().compacted, kKeep);
  }
}

}  // namespace
}  // namespace mvcc
