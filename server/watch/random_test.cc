// Random histories: a writer, watchers of random ranges that come, go, lag and resume, slow readers, compactions,
// revisions that come as a snapshot. One thread; a seed replays a failure.
#include <random>

#include "watch/checker_test.h"
#include "watch/fixture_test.h"

namespace watch {
namespace {

class Random : public Fixture, public ::testing::WithParamInterface<uint32_t> {
 protected:
  struct Reader {
    explicit Reader(Hub& hub) : client(hub) {}
    Client client;
    StreamChecker checker;
    int wakes_seen = 0;
    bool dry = true;  // take() found nothing last
  };

  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  std::string key() { return std::string(1 + below(2), static_cast<char>('a' + below(4))); }

  void write_some() {
    std::vector<mvcc::EventBatch> batches;
    for (uint32_t n = 1 + (below(5) == 0 ? below(40) : below(3)); n > 0; n--) {
      std::map<std::string, std::optional<std::string>> writes;
      for (uint32_t keys = 1 + below(4); keys > 0; keys--) {
        std::string k = key();
        bool erase = below(3) == 0 && mvcc.alive(k);
        writes[k] = erase ? std::nullopt : std::optional(std::string(below(20), 'x') + std::to_string(below(1000)));
      }
      batches.push_back(mvcc.write({writes.begin(), writes.end()}));
      history_.push_back(batches.back());
    }
    int64_t revision = batches.back().revision;
    if (below(40) == 0) batches.clear();  // as after the installation of a snapshot
    if (below(3) == 0) take_some();       // the hub has not heard of what is published
    if (below(3) == 0) create();
    hub->publish(std::move(batches), revision);
  }
  void create() {
    if (readers_.empty() || below(4) == 0) readers_.push_back(std::make_unique<Reader>(*hub));
    Reader& reader = *readers_[below(static_cast<uint32_t>(readers_.size()))];
    Request request;
    request.set_key(key());
    uint32_t kind = below(4);
    if (kind == 1) request.set_range_end(std::string(1, '\0'));
    if (kind == 2) request.set_range_end(request.key() + "~");
    if (kind == 3) request.set_range_end(key());  // may be empty
    int64_t now = mvcc.published().revision;
    uint32_t start = below(4);
    if (start == 1) request.set_start_revision(1 + below(static_cast<uint32_t>(now + 1)));
    if (start == 2) request.set_start_revision(std::max<int64_t>(1, now - below(50)));
    if (start == 3) request.set_start_revision(now + below(10));
    if (below(5) == 0) request.add_filters(Request::NOPUT);
    if (below(5) == 0) request.add_filters(Request::NODELETE);
    request.set_prev_kv(below(3) == 0);
    request.set_fragment(below(3) == 0);
    request.set_progress_notify(below(3) == 0);
    if (below(3) == 0) request.set_watch_id(1 + below(10));
    reader.checker.asked(request);
    reader.client.stream->create(request);
  }
  void take(Reader& reader, uint32_t most) {
    for (; most > 0; most--) {
      auto response = reader.client.stream->take();
      reader.dry = response == nullptr;
      if (reader.dry) {
        reader.wakes_seen = reader.client.wakes;
        return;
      }
      SCOPED_TRACE(line(response->message));
      reader.checker.heard(response->message, history_);
    }
  }
  void take_some() {
    if (!readers_.empty()) take(*readers_[below(static_cast<uint32_t>(readers_.size()))], 1 + below(20));
  }
  void turn() {
    switch (below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return write_some();
      case 4:
        return create();
      case 5: {
        if (readers_.empty()) return;
        Reader& reader = *readers_[below(static_cast<uint32_t>(readers_.size()))];
        auto ids = reader.checker.ids();
        if (!ids.empty()) reader.client.stream->cancel(ids[below(static_cast<uint32_t>(ids.size()))]);
        return;
      }
      case 6:
        if (!readers_.empty()) readers_[below(static_cast<uint32_t>(readers_.size()))]->client.stream->progress();
        return;
      case 7: {
        auto published = mvcc.published();
        int64_t to = published.revision - 1 - below(100);
        if (to > published.compacted && to > 0 && below(4) == 0) {
          mvcc.compact(to);
          if (below(2) == 0) hub->step();
          hub->compacted(to);
        }
        return;
      }
      case 8:
        if (readers_.size() > 3 && below(8) == 0) readers_.erase(readers_.begin());
        return;
      case 9:
        now_ += std::chrono::seconds(below(20));
        return hub->tick(now_);
      case 10:
      case 11:
      case 12:
        hub->step();
        return;
      default:
        return take_some();
    }
  }

  std::mt19937 random_;
  History history_;
  std::vector<std::unique_ptr<Reader>> readers_;
  std::chrono::nanoseconds now_{std::chrono::seconds(1'000'000)};
};

TEST_P(Random, EveryWatcherHearsAllOfItOnce) {
  uint64_t events = 0;
  uint64_t compacted = 0;
  for (uint32_t seed = GetParam() * 1000; seed < GetParam() * 1000 + 40 && !HasFatalFailure(); seed++) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random_.seed(seed);
    readers_.clear();
    history_.clear();
    mvcc.reset();
    start({.watcher_buffer_bytes = 100 + below(3000),
           .stream_buffer_bytes = 200 + below(5000),
           .process_buffer_bytes = 1000 + below(20'000),
           .response_bytes = 200 + below(2000),
           .progress_interval = std::chrono::seconds(10),
           .ring_bytes = below(3) * 5000,
           .ring_revisions = 1 + below(60)});
    for (int i = 0; i < 1500 && !HasFailure(); i++) turn();
    // Everybody reads on until nothing is left.
    for (bool more = true; more && !HasFailure();) {
      more = hub->step();
      for (auto& reader : readers_) {
        int wakes = reader->client.wakes;
        if (reader->dry && wakes == reader->wakes_seen)
          continue;  // a lost wake-up would show as events that are missing
        more = true;
        take(*reader, 1'000'000);
      }
    }
    for (auto& reader : readers_) {
      reader->checker.finished(mvcc.published().revision, history_);
      events += reader->checker.events;
      compacted += reader->checker.compacted;
    }
    EXPECT_EQ(hub->stats().behind, 0U);
    EXPECT_EQ(hub->stats().buffered_bytes, 0U);
  }
  readers_.clear();
  // The test would be worth little if nothing of that happened.
  EXPECT_GT(events, 10'000U);
  EXPECT_GT(compacted, 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Random, ::testing::Range(1U, 6U));

}  // namespace
}  // namespace watch
