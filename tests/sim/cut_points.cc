#include "sim/cut_points.h"

#include <algorithm>

namespace sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kWritten = "w/";
constexpr uint64_t kAnswersAlone = 10;  // in 2.

// Puts one key after the other through whoever leads.
class Writer {
 public:
  explicit Writer(Scenario& scenario) : scenario_(scenario) {}

  void act() {
    if (asked_) {
      const bool gone = !scenario_.cluster.is_up(node_) || scenario_.cluster.clock.monotonic() > give_up_at_;
      if (!asked_->has_value() && !gone) return;
      if (asked_->has_value() && **asked_) {
        acknowledged_[key_] = value_;
        ++answers_;
      }
      asked_.reset();
    }
    const auto now = scenario_.cluster.clock.monotonic();
    const auto leader = scenario_.cluster.leader();
    if (now < next_at_ || !leader) return;
    node_ = *leader;
    key_ = kWritten + std::to_string(++count_);
    value_ = "v" + std::to_string(count_) + std::string(scenario_.cluster.random.below(1200), '.');
    next_at_ = now + milliseconds(20);
    give_up_at_ = now + seconds(3);
    asked_ = scenario_.ask(node_, command::put(key_, value_));
  }
  void forget_the_open_one() { asked_.reset(); }
  const Content& acknowledged() const { return acknowledged_; }
  uint64_t answers() const { return answers_; }

 private:
  Scenario& scenario_;
  Answer<Result<apply::Message>> asked_;
  size_t node_ = 0;
  std::string key_;
  std::string value_;
  std::chrono::nanoseconds next_at_{};
  std::chrono::nanoseconds give_up_at_{};
  uint64_t count_ = 0;
  uint64_t answers_ = 0;
  Content acknowledged_;
};

class Run {
 public:
  Run(const Episode& episode, const std::optional<Cut>& cut)
      : episode_(episode), cut_(cut), scenario_(setup_of(episode)), writer_(scenario_) {
    node().wanted = false;
  }

  EpisodeRun run() {
    const bool done = begin() && catch_up() && count_on_it() && lose_the_others();
    EXPECT_TRUE(done) << "not in time: " << step_;
    if (done) compare();
    EXPECT_EQ(cuts() > 0, cut_.has_value());
    run_.replacements = scenario_.cluster.replacements();
    return run_;
  }

 private:
  static Scenario::Setup setup_of(const Episode& episode) {
    Scenario::Setup setup{.nodes = episode.disks.size(), .seed = episode.seed, .options = episode.options};
    for (const auto& disk : episode.disks) setup.disks.push_back(disk->clone());
    return setup;
  }
  Cluster::Node& node() { return scenario_.cluster.node(episode_.victim); }
  MemoryDisk& disk() { return scenario_.disk(episode_.victim); }
  uint64_t cuts() { return scenario_.power_cuts(episode_.victim); }
  bool is_up() { return scenario_.cluster.is_up(episode_.victim); }

  template <class Done>
  bool until(const char* step, Done done) {
    step_ = step;
    return scenario_.until(
        [&] {
          writer_.act();
          cut_again();
          return done();
        },
        seconds(60));
  }
  void cut_again() {
    if (!cut_ || !cut_->again || cut_again_ || cuts() == 0 || node().is_open()) return;
    cut_again_ = true;
    disk().cut_power_at(disk().changes() + scenario_.cluster.random.below(60));
  }

  bool begin() {
    step_ = "a cluster without the victim";
    if (!scenario_.await_equal()) return false;
    if (cut_) {
      disk().cut_power_at(cut_->change);
      node().loss = cut_->loss;
    }
    scenario_.start(episode_.victim);
    return true;
  }

  bool catch_up() {
    const uint64_t goal = scenario_.published(scenario_.await_leader()).applied_index;
    if (!until("the victim is where the others are",
               [&] { return is_up() && scenario_.published(episode_.victim).applied_index >= goal; })) {
      return false;
    }
    run_.changes_caught_up = disk().changes();
    return true;
  }

  bool count_on_it() {
    if (!until("a leader", [&] { return scenario_.ready_leader().has_value(); })) return false;
    for (size_t i = 0; i < scenario_.cluster.size(); ++i) {
      if (i != episode_.victim && i != *scenario_.ready_leader()) idle_ = i;
    }
    scenario_.cluster.pause(idle_);
    const uint64_t answers = writer_.answers() + kAnswersAlone;
    if (!until("answers that count on the victim", [&] { return is_up() && writer_.answers() >= answers; })) {
      return false;
    }
    run_.changes = disk().changes();
    run_.calls = disk().calls();
    return true;
  }

  bool lose_the_others() {
    disk().cut_power_at(~uint64_t{0});
    const size_t lost = 3 - episode_.victim - idle_;  // of 0, 1 and 2
    writer_.forget_the_open_one();
    scenario_.power_off(lost, MemoryDisk::Loss::kEverything);
    scenario_.cluster.resume(idle_);
    step_ = "a leader without the one that was lost";
    if (!scenario_.until([&] { return scenario_.ready_leader().has_value(); }, seconds(60))) return false;
    step_ = "a read";
    const size_t leader = *scenario_.ready_leader();
    const auto read = scenario_.read(leader, "any");
    if (!scenario_.until([&] { return read->has_value(); }) || !**read) return false;
    expect_everything(leader);
    scenario_.start(lost);
    step_ = "all are equal";
    return scenario_.await_equal();
  }

  void expect_everything(size_t at) {
    Content content = content_of(scenario_.member(at));
    for (const auto& [key, value] : writer_.acknowledged()) {
      EXPECT_EQ(content[key], value) << key << " was acknowledged; now at member " << at;
    }
    std::erase_if(content, [](const auto& kv) { return kv.first.starts_with(kWritten); });
    EXPECT_TRUE(content == episode_.content) << "what was there before is another at member " << at;
  }

  void compare() {
    scenario_.invariants.check_equal();
    for (size_t i = 0; i < scenario_.cluster.size(); ++i) {
      expect_everything(i);
      EXPECT_EQ(difference(scenario_.member(0), scenario_.member(i)), "") << "member " << i;
    }
  }

  const Episode& episode_;
  const std::optional<Cut> cut_;
  Scenario scenario_;
  Writer writer_;
  size_t idle_ = 0;
  bool cut_again_ = false;
  const char* step_ = "";
  EpisodeRun run_;
};

}  // namespace

Content content_of(member::Member& member) {
  Content content;
  etcdserverpb::RangeRequest all;
  all.set_key(std::string(1, '\0'));
  all.set_range_end(std::string(1, '\0'));
  etcdserverpb::RangeResponse response;
  const Status read = member.reader()->range(all, &response);
  EXPECT_TRUE(read) << read.error().message;
  for (const auto& kv : response.kvs()) content[kv.key()] = kv.value();
  return content;
}

EpisodeRun run_episode(const Episode& episode, const std::optional<Cut>& cut) { return Run(episode, cut).run(); }

}  // namespace sim
