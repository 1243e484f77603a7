// What clients and probes are told of a disk that is damaged or full, and of a quota that is used up.
#include <gmock/gmock.h>

#include "sim/seeds.h"
#include "sim/service.h"

namespace sim {
namespace {

using etcdserverpb::DeleteRangeRequest;
using etcdserverpb::PutRequest;
using etcdserverpb::RangeRequest;
using etcdserverpb::RangeResponse;
using testing::HasSubstr;
using Operation = MemoryDisk::Operation;

const std::string kJournal = "data/store/0-0/store.db-wal";

PutRequest put_of(const std::string& key, const std::string& value) {
  PutRequest request;
  request.set_key(key);
  request.set_value(value);
  return request;
}

RangeRequest range_of(const std::string& key, int64_t revision = 0) {
  RangeRequest request;
  request.set_key(key);
  request.set_revision(revision);
  return request;
}

bool becomes_ready(Simulation& simulation) {
  return simulation.run_until([&] { return simulation.member().state().ready; }, std::chrono::seconds(20));
}

// --- A page that changed on the medium under a running member

// A value that is longer than a page and that nobody has read since the start, one bit of it flipped.
class DamagedValue : public testing::Test {
 protected:
  static constexpr int64_t kRevision = 2;

  void SetUp() override {
    for (int i = 0; i < 9000; ++i) value_.push_back(static_cast<char>(sim_.random.below(256)));
    open();
    ASSERT_TRUE(service_->call("/v3/kv/put", put_of("k", value_)));
    ASSERT_TRUE(service_->call("/v3/kv/put", put_of("k", "another")));
    restart();  // caches are empty
    const auto journal = sim_.disk.content(kJournal);
    ASSERT_TRUE(journal);
    const size_t at = journal->find(value_.substr(5000, 100));  // the beginning of a value shares its page
    ASSERT_NE(at, std::string::npos);
    sim_.disk.flip_bit(kJournal, 8 * at);
  }
  void open() {
    const Status opened = sim_.open(default_options());
    ASSERT_TRUE(opened) << opened.error().message;
    ASSERT_TRUE(becomes_ready(sim_));
    service_.emplace(sim_);
  }
  void restart() {
    service_.reset();
    sim_.kill();
    open();
  }
  // The member has stopped, with words that help.
  void expect_stopped() {
    sim_.run_until([] { return false; }, std::chrono::seconds(1));
    ASSERT_TRUE(sim_.failure());
    EXPECT_EQ(sim_.failure()->code, Code::kDataLoss);
    EXPECT_THAT(sim_.failure()->message, HasSubstr(kJournal + ": frame "));
    EXPECT_THAT(sim_.failure()->message, HasSubstr("remove this member from the cluster and add it again"));
    EXPECT_EQ(service_->get("/health").status, 503);
    EXPECT_EQ(service_->get("/readyz").status, 503);
  }

  Simulation sim_{1};
  std::string value_;
  std::optional<Service> service_;
};

TEST_F(DamagedValue, StopsTheMemberWhenARangeMeetsIt) {
  EXPECT_EQ(service_->get("/health").status, 200);
  const Status read = service_->call("/v3/kv/range", range_of("k", kRevision));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::kDataLoss);
  ASSERT_TRUE(sim_.failure()) << "at once: the next read might not notice";
  expect_stopped();
  const Status later = service_->call("/v3/kv/put", put_of("k", "too late"));
  EXPECT_FALSE(later);
}

TEST_F(DamagedValue, StopsTheMemberWhenATransactionOfReadsMeetsIt) {
  etcdserverpb::TxnRequest txn;
  *txn.add_success()->mutable_request_range() = range_of("k", kRevision);
  const Status read = service_->call("/v3/kv/txn", txn);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::kDataLoss);
  ASSERT_TRUE(sim_.failure()) << "at once: the next read might not notice";
  expect_stopped();
}

TEST_F(DamagedValue, StopsTheMemberWhenAWatchMeetsIt) {
  const auto stream = sim_.member().watches().open([] {});
  etcdserverpb::WatchCreateRequest request;
  request.set_key("k");
  request.set_start_revision(kRevision);
  stream->create(request);
  expect_stopped();
  stream->close();
}

// Nothing was copied into the database yet, so the Raft log still has everything.
TEST_F(DamagedValue, IsWholeAgainAfterAStartThatStillHasItsLog) {
  EXPECT_FALSE(service_->call("/v3/kv/range", range_of("k", kRevision)));
  restart();
  const uint64_t call = service_->send("/v3/kv/range", range_of("k", kRevision));
  ASSERT_TRUE(service_->answer(call).value_or(Status()));
  EXPECT_EQ(service_->response<RangeResponse>(call).kvs(0).value(), value_);
}

// --- A disk without space

class FullDisk : public testing::Test {
 protected:
  void SetUp() override {
    open();
    ASSERT_TRUE(service_->call("/v3/kv/put", put_of("before", "1")));
  }
  void open() {
    const Status opened = sim_.open(default_options());
    ASSERT_TRUE(opened) << opened.error().message;
    ASSERT_TRUE(becomes_ready(sim_));
    service_.emplace(sim_);
  }
  // Every write to files of this name fails, until clear_faults().
  void fill(const std::string& path) {
    sim_.disk.inject({.operation = Operation::kWrite, .code = Code::kResourceExhausted, .path = path, .repeat = true});
  }
  std::string value_of(const std::string& key, bool serializable = false) {
    RangeRequest request = range_of(key);
    request.set_serializable(serializable);
    const uint64_t call = service_->send("/v3/kv/range", request);
    const auto status = service_->answer(call);
    if (!status || !*status) return status ? status->error().message : "no answer";
    const auto& response = service_->response<RangeResponse>(call);
    return response.kvs().empty() ? "" : response.kvs(0).value();
  }
  bool health_becomes(int status, std::chrono::seconds within) {
    return sim_.run_until([&] { return service_->get("/health").status == status; }, within);
  }
  void expect_told() {
    EXPECT_EQ(service_->get("/health").body,
              "{\"health\":\"false\",\"reason\":\"RANGE ERROR:the disk is full: writes wait for space\"}\n");
    EXPECT_THAT(service_->get("/readyz").body,
                HasSubstr("[-]linearizable_read failed: the disk is full: writes wait for space"));
    EXPECT_EQ(service_->get("/readyz").status, 503);
    EXPECT_EQ(service_->get("/livez").status, 200) << "a new start would not help";
    EXPECT_EQ(service_->get("/health", "serializable=true").status, 200) << "reads are served";
  }

  Simulation sim_{1};
  std::optional<Service> service_;
};

class FullDiskOf : public FullDisk, public testing::WithParamInterface<std::string> {};

TEST_P(FullDiskOf, IsToldAndWritesGoOnWhenThereIsSpaceAgain) {
  EXPECT_EQ(service_->get("/health").status, 200);
  fill(GetParam());
  const uint64_t first = service_->send("/v3/kv/put", put_of("first", "1"));
  ASSERT_TRUE(health_becomes(503, std::chrono::seconds(2)));
  expect_told();
  EXPECT_EQ(value_of("before"), "1");

  ASSERT_TRUE(sim_.run_until([&] { return service_->answer(first).has_value(); }, std::chrono::seconds(10)));
  EXPECT_EQ(service_->answer(first)->error().message, "etcdserver: request timed out");
  const uint64_t second = service_->send("/v3/kv/put", put_of("second", "2"));
  EXPECT_FALSE(sim_.run_until([&] { return service_->answer(second).has_value(); }, std::chrono::seconds(2)));
  ASSERT_FALSE(sim_.failure()) << sim_.failure()->message;
  expect_told();

  sim_.disk.clear_faults();
  ASSERT_TRUE(health_becomes(200, std::chrono::seconds(2))) << service_->get("/health").body;
  EXPECT_EQ(service_->get("/readyz").status, 200);
  ASSERT_TRUE(sim_.run_until([&] { return service_->answer(second).has_value(); }, std::chrono::seconds(2)));
  EXPECT_TRUE(*service_->answer(second)) << "it only waited";
  EXPECT_TRUE(service_->call("/v3/kv/put", put_of("third", "3")));

  service_.reset();
  sim_.kill();
  sim_.disk.cut_power();
  sim_.disk.crash(sim_.random, MemoryDisk::Loss::kEverything);
  open();
  for (const auto& [key, value] : {std::pair("before", "1"), {"second", "2"}, {"third", "3"}}) {
    EXPECT_EQ(value_of(key), value) << key;
  }
}

// Both disks are full; that one of them has space again does not make the member well.
TEST_F(FullDisk, IsToldUntilBothDisksHaveSpace) {
  fill("data/store");
  const uint64_t first = service_->send("/v3/kv/put", put_of("first", "1"));
  ASSERT_TRUE(health_becomes(503, std::chrono::seconds(2)));
  fill("data/wal");
  const uint64_t second = service_->send("/v3/kv/put", put_of("second", "2"));
  EXPECT_FALSE(health_becomes(200, std::chrono::seconds(1)));
  sim_.disk.clear_faults();
  fill("data/store");
  EXPECT_FALSE(health_becomes(200, std::chrono::seconds(2)));
  sim_.disk.clear_faults();
  EXPECT_TRUE(health_becomes(200, std::chrono::seconds(2)));
  const Status none = ::fail(Code::kUnknown, "no answer");
  EXPECT_TRUE(service_->answer(first).value_or(none));
  EXPECT_TRUE(service_->answer(second).value_or(none));
}

// Not ready, which is told with its reason, and ready by itself later.
TEST_F(FullDisk, OfTheStoreFoundAtTheStartIsToldToo) {
  service_.reset();
  sim_.kill();
  fill("data/store");
  const Status opened = sim_.open(default_options());
  ASSERT_TRUE(opened) << opened.error().message;
  service_.emplace(sim_);
  EXPECT_FALSE(sim_.run_until([&] { return sim_.member().state().ready; }, std::chrono::seconds(5)));
  ASSERT_FALSE(sim_.failure()) << sim_.failure()->message;
  expect_told();
  EXPECT_EQ(value_of("before", true), "1");
  sim_.disk.clear_faults();
  EXPECT_TRUE(health_becomes(200, std::chrono::seconds(5)));
  EXPECT_EQ(value_of("before"), "1");
}

// The log cuts off a torn end before anything else. (Its segments have their space from the beginning: on most file
// systems this write finds room.)
TEST_F(FullDisk, OfTheLogFoundAtTheStartIsRefusedByName) {
  service_.reset();
  sim_.kill();
  fill("data/wal");
  const Status opened = sim_.open(default_options());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kResourceExhausted);
  EXPECT_THAT(opened.error().message, HasSubstr("data/wal/"));
  EXPECT_THAT(opened.error().message, HasSubstr("No space left on device"));
  sim_.kill();
  sim_.disk.clear_faults();
  open();
  EXPECT_EQ(value_of("before"), "1");
}

INSTANTIATE_TEST_SUITE_P(Files, FullDiskOf, testing::Values("data/wal", "data/store", "data"),
                         [](const auto& info) -> std::string {
                           return info.param == "data" ? "Both" : info.param == "data/wal" ? "TheLog" : "TheStore";
                         });

// --- A quota that is used up

class Quota : public testing::Test {
 protected:
  static constexpr const char* kNoSpace = "etcdserver: mvcc: database space exceeded";

  void SetUp() override {
    auto options = default_options();
    options.quota_bytes = 256 << 10;
    ASSERT_TRUE(sim_.open(options));
    ASSERT_TRUE(becomes_ready(sim_));
    service_.emplace(sim_);
  }
  // Puts until the quota is used up; the alarm is not raised yet.
  void use_up() {
    while (sim_.member().state().store.size_in_use_bytes <= sim_.member().options().quota_bytes) {
      ASSERT_TRUE(service_->call("/v3/kv/put", put_of("fill/" + std::to_string(filled_++), std::string(20'000, 'x'))));
    }
    ASSERT_TRUE(sim_.member().alarms().empty()) << "another seed";
  }
  // The answer that is there before any stage has done a step.
  Status at_once(const std::string& path, const google::protobuf::Message& request) {
    return service_->answer(service_->send(path, request)).value_or(Status());
  }
  void expect_refused(const Status& status) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error(), (Error{Code::kResourceExhausted, kNoSpace}));
  }
  bool alarm_is_raised() {
    return sim_.run_until([&] { return !sim_.member().alarms().empty(); }, std::chrono::seconds(2));
  }

  Simulation sim_{1};
  std::optional<Service> service_;
  int filled_ = 0;
};

TEST_F(Quota, IsCheckedBeforeProposing) {
  use_up();
  const auto before = sim_.member().state();
  expect_refused(at_once("/v3/kv/put", put_of("k", "1")));
  etcdserverpb::LeaseGrantRequest grant;
  grant.set_ttl(60);
  expect_refused(at_once("/v3/lease/grant", grant));
  etcdserverpb::TxnRequest txn;
  txn.add_success()->mutable_request_range()->set_key("k");
  *txn.add_failure()->mutable_request_txn()->add_success()->mutable_request_put() = put_of("k", "1");
  expect_refused(at_once("/v3/kv/txn", txn));
  EXPECT_EQ(sim_.member().state().proposals_waiting, before.proposals_waiting);

  ASSERT_TRUE(alarm_is_raised());
  EXPECT_EQ(sim_.member().alarms()[0].alarm(), etcdserverpb::NOSPACE);
  expect_refused(service_->call("/v3/kv/put", put_of("k", "1")));
  EXPECT_THAT(service_->get("/health").body, HasSubstr("ALARM NOSPACE"));
  EXPECT_TRUE(service_->call("/v3/kv/range", range_of("fill/0"))) << "reading goes on";
}

TEST_F(Quota, LeavesAWayBack) {
  use_up();
  DeleteRangeRequest all;
  all.set_key("fill/");
  all.set_range_end("fill0");
  EXPECT_TRUE(service_->call("/v3/kv/deleterange", all));
  EXPECT_TRUE(alarm_is_raised()) << "deleted is not compacted";
  etcdserverpb::TxnRequest txn;
  txn.add_success()->mutable_request_delete_range()->set_key("none");
  EXPECT_TRUE(service_->call("/v3/kv/txn", txn));
  etcdserverpb::CompactionRequest compaction;
  compaction.set_revision(sim_.member().state().published.revision);
  compaction.set_physical(true);
  EXPECT_TRUE(service_->call("/v3/kv/compaction", compaction));
  EXPECT_FALSE(service_->call("/v3/kv/put", put_of("k", "1"))) << "until the alarm is disarmed";

  etcdserverpb::AlarmRequest disarm;
  disarm.set_action(etcdserverpb::AlarmRequest::DEACTIVATE);
  disarm.set_memberid(sim_.member().member_id());
  disarm.set_alarm(etcdserverpb::NOSPACE);
  EXPECT_TRUE(service_->call("/v3/maintenance/alarm", disarm));
  EXPECT_FALSE(alarm_is_raised()) << "and it stays so";
  EXPECT_TRUE(service_->call("/v3/kv/put", put_of("k", "1")));
  EXPECT_EQ(service_->get("/health").status, 200);
}

}  // namespace
}  // namespace sim
