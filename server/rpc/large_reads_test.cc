#include "rpc/large_reads.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "base/thread.h"
#include "member/options.h"

namespace rpc {
namespace {

using etcdserverpb::RangeResponse;

// A client: parts stay with it until take(), as in a socket that is not read.
class Client final : public http::ReplyTarget {
 public:
  void answer(uint64_t, http::Answer answer) override {
    MutexLock lock(mutex_);
    if (!answer) error_ = answer.error();
    ended_ = true;
  }
  void answer_now(uint64_t, const http::Message&) override { FAIL() << "in parts"; }
  void answer_part(uint64_t, std::shared_ptr<const http::Encoded> part, bool last) override {
    MutexLock lock(mutex_);
    EXPECT_FALSE(ended_);
    if (gone_) return;
    parts_.push_back(std::move(part));
    ended_ = last;
  }
  bool wanted(uint64_t) const override {
    MutexLock lock(mutex_);
    return !gone_;
  }

  // What has come so far. Drops the parts outside of its lock, as a connection does.
  void take() {
    std::deque<std::shared_ptr<const http::Encoded>> parts;
    {
      MutexLock lock(mutex_);
      parts.swap(parts_);
    }
    for (const auto& part : parts) text_ += part->bytes;
  }
  std::string take_all() {
    while (!ended()) {
      take();
      std::this_thread::yield();
    }
    take();
    return text_;
  }
  void vanish() {
    {
      MutexLock lock(mutex_);
      gone_ = true;
    }
    take();
  }
  bool ended() const {
    MutexLock lock(mutex_);
    return ended_;
  }
  std::string error() const {
    MutexLock lock(mutex_);
    return error_ ? error_->message : "";
  }
  size_t parts() const {
    MutexLock lock(mutex_);
    return parts_.size();
  }

 private:
  mutable Mutex mutex_;
  std::deque<std::shared_ptr<const http::Encoded>> parts_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;
  bool gone_ GUARDED_BY(mutex_) = false;
  std::optional<Error> error_ GUARDED_BY(mutex_);
  std::string text_;  // the test's thread
};

// `pieces` pairs of 200,000 bytes.
class Pieces final : public LargeRead {
 public:
  explicit Pieces(int pieces, bool whole = false) : pieces_(pieces), whole_(whole) {}
  Result<bool> next(mvcc::Reader&, http::PartsEncoder& to) override {
    if (fail_at_ && *fail_at_ == done_) {
      fail_at_.reset();
      return ::fail(error_);
    }
    do {
      RangeResponse part;
      part.add_kvs()->set_value(std::string(150'000, static_cast<char>('a' + done_ % 26)));
      to.add(part);
    } while (++done_ < pieces_ && whole_);
    return done_ == pieces_;
  }
  void restart() override { done_ = 0; }
  bool whole() const override { return whole_; }
  Pieces& fails_once_at(int piece, Error error) {
    fail_at_ = piece;
    error_ = std::move(error);
    return *this;
  }

 private:
  const int pieces_;
  const bool whole_;
  int done_ = 0;
  std::optional<int> fail_at_;
  Error error_;
};

class NoReader final : public mvcc::Reader {
 public:
  const mvcc::Published& at() const override { return at_; }
  Status range(const etcdserverpb::RangeRequest&, RangeResponse*) override { return {}; }
  Result<mvcc::KeyValuePtr> get(std::string_view, int64_t) override { return mvcc::KeyValuePtr(); }
  Status history(int64_t, int64_t, const std::function<bool(std::string_view)>&,
                 const std::function<bool(mvcc::EventBatch)>&) override {
    return {};
  }

 private:
  mvcc::Published at_;
};

// By twice as many as there are: the others wait, and keep nothing.
bool all_seats_taken(const LargeReads::Stats& now) {
  return now.seated == LargeReads::kSeats && now.waiting == LargeReads::kSeats;
}

constexpr size_t kPieceBytes = 200'000 + 20;  // in JSON, at most

class LargeReadsTest : public testing::Test {
 protected:
  void SetUp() override { large_.start(); }
  std::shared_ptr<Client> submit(std::unique_ptr<LargeRead> read) {
    auto client = std::make_shared<Client>();
    large_.submit(std::move(read), http::Reply(client, 1));
    return client;
  }
  std::shared_ptr<Client> submit(int pieces, bool whole = false) {
    return submit(std::make_unique<Pieces>(pieces, whole));
  }
  template <class Condition>
  LargeReads::Stats wait_until(Condition&& holds) {
    for (;;) {
      const LargeReads::Stats now = large_.stats();
      if (holds(now)) return now;
      std::this_thread::yield();
    }
  }
  void wait_idle() {
    wait_until([](const auto& now) { return now.bytes == 0 && now.seated == 0 && now.waiting == 0; });
  }
  static std::string expected(int pieces) {
    http::PartsEncoder all;
    Pieces read(pieces);
    NoReader reader;
    while (!*read.next(reader, all)) {
    }
    all.close();
    return all.take();
  }

  Error damage_{};
  LargeReads large_{{.reader = [] { return std::make_unique<NoReader>(); },
                     .damaged = [this](const Error& error) { damage_ = error; }}};
};

TEST_F(LargeReadsTest, AShortAnswerIsOnePart) {
  const auto client = submit(2);
  while (!client->ended()) std::this_thread::yield();
  EXPECT_EQ(client->parts(), 1u);
  EXPECT_EQ(large_.stats().seated, 0u);
  EXPECT_EQ(client->take_all(), expected(2));
  wait_idle();
}

TEST_F(LargeReadsTest, ALongOneWaitsForItsClient) {
  const auto client = submit(400);
  const auto stats = wait_until([](const auto& now) { return now.bytes > LargeReads::kBytesMax / 4; });
  EXPECT_FALSE(client->ended());
  EXPECT_EQ(stats.seated, 1u);
  client->take();  // alone it runs ahead, and goes on
  wait_until([](const auto& now) { return now.bytes > LargeReads::kBytesMax / 4; });
  EXPECT_LE(large_.stats().bytes, LargeReads::kBytesMax);
  EXPECT_EQ(client->take_all(), expected(400));
  wait_idle();
}

TEST_F(LargeReadsTest, AllTogetherHoldALimitedAmount) {
  std::vector<std::shared_ptr<Client>> clients;
  for (size_t i = 0; i < 2 * LargeReads::kSeats; ++i) clients.push_back(submit(30));
  const auto stats = wait_until(all_seats_taken);
  EXPECT_LE(stats.bytes, LargeReads::kBytesMax + LargeReads::kSeats * (LargeReads::kPartBytes + kPieceBytes));
  const auto quick = submit(2);
  EXPECT_EQ(quick->take_all(), expected(2)) << "a short one does not wait for a seat";
  // Whoever reads gets on, though others do not.
  size_t done = 0;
  for (const auto& client : clients) {
    if (client->parts() == 0) continue;
    EXPECT_EQ(client->take_all(), expected(30));
    if (++done == 3) break;
  }
  for (const auto& client : clients) EXPECT_EQ(client->take_all(), expected(30));
  wait_idle();
}

TEST_F(LargeReadsTest, AClientThatIsGoneLeavesItsSeat) {
  std::vector<std::shared_ptr<Client>> clients;
  for (size_t i = 0; i < LargeReads::kSeats; ++i) clients.push_back(submit(30));
  wait_until([](const auto& now) { return now.seated == LargeReads::kSeats && now.waiting == 0; });
  const auto next = submit(30);
  wait_until([](const auto& now) { return now.waiting == 1; });
  clients[7]->vanish();
  EXPECT_EQ(next->take_all(), expected(30));
  for (const auto& client : clients) client->vanish();
  wait_idle();
}

TEST_F(LargeReadsTest, WholeOnesAreBegunWhileThereIsRoom) {
  constexpr int kPieces = 100;
  std::vector<std::shared_ptr<Client>> clients;
  for (int i = 0; i < 10; ++i) clients.push_back(submit(kPieces, /*whole=*/true));
  const auto stats = wait_until([](const auto& now) { return now.bytes >= LargeReads::kBytesMax; });
  EXPECT_LE(stats.bytes, LargeReads::kBytesMax + LargeReads::kThreads * kPieces * kPieceBytes);
  EXPECT_GE(stats.waiting, 4u);
  for (const auto& client : clients) EXPECT_EQ(client->take_all(), expected(kPieces));
  wait_idle();
}

TEST_F(LargeReadsTest, BeginsAgainWhenACompactionPasses) {
  auto read = std::make_unique<Pieces>(2);
  read->fails_once_at(1, {Code::kOutOfRange, mvcc::kErrorCompacted});
  EXPECT_EQ(submit(std::move(read))->take_all(), expected(2));
  auto asked = std::make_unique<Pieces>(2);
  asked->fails_once_at(0, {Code::kOutOfRange, mvcc::kErrorCompacted});
  const auto refused = submit(std::move(asked));
  refused->take_all();
  EXPECT_EQ(refused->error(), mvcc::kErrorCompacted) << "what is compacted at the first piece is so for ever";
  auto sent = std::make_unique<Pieces>(400);
  sent->fails_once_at(300, {Code::kOutOfRange, mvcc::kErrorCompacted});
  const auto cut = submit(std::move(sent));
  cut->take_all();
  EXPECT_EQ(cut->error(), mvcc::kErrorCompacted) << "what is sent cannot be taken back";
  wait_idle();
}

TEST_F(LargeReadsTest, DamageIsTold) {
  auto read = std::make_unique<Pieces>(2);
  read->fails_once_at(1, {Code::kDataLoss, "bad page"});
  const auto client = submit(std::move(read));
  client->take_all();
  EXPECT_EQ(client->error(), "bad page");
  wait_idle();
  EXPECT_EQ(damage_.message, "bad page");
}

TEST_F(LargeReadsTest, StopAnswersWhatIsLeft) {
  std::vector<std::shared_ptr<Client>> clients;
  for (size_t i = 0; i < 2 * LargeReads::kSeats; ++i) clients.push_back(submit(100));
  wait_until(all_seats_taken);
  large_.stop();
  size_t answered = 0;
  for (const auto& client : clients) {
    if (client->error() == member::kErrorStopped) ++answered;
  }
  EXPECT_GE(answered, LargeReads::kSeats) << "those that were not begun; the others' connections are closed";
  for (const auto& client : clients) client->vanish();
  const auto late = submit(1);
  EXPECT_EQ(late->error(), member::kErrorTooManyRequests);
}

}  // namespace
}  // namespace rpc
