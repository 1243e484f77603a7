#include "history/generator.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

#include "base/memory_disk.h"
#include "history/generator_store.h"

namespace history {
namespace {

using std::chrono::microseconds;

class Generator {
 public:
  explicit Generator(const GeneratorOptions& options) : options_(options), random_(options.seed) {
    bug_from_ = options.operations / 4 + random_.below(options.operations / 2 + 1);
    for (uint64_t client = 1; client <= options.clients; ++client) {
      plan(microseconds(random_.below(500)), [this, client] { begin(client); });
    }
  }

  Generated run() {
    while (!queue_.empty()) {
      const Step step = queue_.top();
      queue_.pop();
      now_ = step.at;
      step.run();
      if (random_.below(40) == 0) store_.expire_one(random_.next());
    }
    // Somebody looks at everything in the end.
    Operation last{.client = 99, .call = now_ + microseconds(10), .outcome = Outcome::kOk};
    last.success = {{.kind = Request::Kind::kGet, .key = "k", .end = "l"}};
    store_.run(last);
    last.returned = last.call + microseconds(10);
    generated_.record.operations.push_back(std::move(last));
    generated_.events = store_.events();
    generated_.record.watches = watches();
    if (!options_.revisions) forget_revisions();
    return std::move(generated_);
  }

 private:
  struct Step {
    Time at{};
    uint64_t number = 0;
    std::function<void()> run;
    bool operator<(const Step& other) const { return std::tie(at, number) > std::tie(other.at, other.number); }
  };
  void plan(Time after, std::function<void()> run) { queue_.push({now_ + after, next_step_++, std::move(run)}); }
  bool percent(uint64_t share) { return random_.below(100) < share; }
  std::string key() { return "k" + std::to_string(random_.below(options_.keys)); }

  // The next operation of a client.
  void begin(uint64_t client) {
    if (begun_ == options_.operations) return;
    const size_t number = begun_++;
    Operation operation{.client = client, .call = now_};
    choose(operation);
    if (operation.serializable) {
      operation.member = 1 + client % 3;
      told_before_[number] = told_[operation.member];
    }
    const bool unknown = percent(options_.unknown_percent);
    const bool failed = !unknown && percent(options_.failed_percent);
    operation.outcome = unknown ? Outcome::kUnknown : failed ? Outcome::kFailed : Outcome::kOk;
    const auto until_effect = microseconds(1 + random_.below(percent(10) ? 5000 : 300));
    const auto until_answer = microseconds(1 + random_.below(percent(10) ? 5000 : 300));
    generated_.record.operations.push_back(operation);
    const bool buggy = number >= bug_from_ && !generated_.has_bug;
    if (unknown) {
      if (percent(60)) {  // happens, maybe long after the client has given up
        const auto late = microseconds(random_.below(20'000));
        plan(until_effect + late, [this, number, buggy] {
          run_open(number);
          if (buggy && options_.bug == Bug::kTwice && may_write(at(number))) {
            generated_.has_bug = true;
            run_open(number);
          }
        });
      }
      plan(microseconds(10'000), [this, client] { begin(client); });
      return;
    }
    plan(until_effect, [this, number, buggy] { take_effect(number, buggy); });
    plan(until_effect + until_answer, [this, number, client] {
      at(number).returned = now_;
      learn(at(number));
      plan(microseconds(random_.below(1000)), [this, client] { begin(client); });
    });
  }

  void run_open(size_t number) {
    Operation copy = at(number);
    copy.outcome = Outcome::kOk;
    store_.run(copy);
  }

  void take_effect(size_t number, bool buggy) {
    Operation& operation = at(number);
    if (operation.outcome == Outcome::kFailed) {
      if (buggy && options_.bug == Bug::kRefusedHappens && may_write(operation)) {
        const int64_t before = store_.revision();
        Operation copy = operation;
        store_.run(copy);
        generated_.has_bug = store_.revision() > before;
      }
      return;
    }
    if (operation.serializable) {
      int64_t& applied = applied_[operation.member];
      applied += static_cast<int64_t>(random_.below(static_cast<uint64_t>(store_.revision() - applied) + 1));
      operation.revision = applied;
      if (buggy && options_.bug == Bug::kGoesBack && told_before_[number] > 20) {
        generated_.has_bug = true;
        operation.revision = told_before_[number] - 1;
      }
      store_.read_at(operation, operation.revision);
      return;
    }
    if (buggy && options_.bug != Bug::kNone) {
      generated_.has_bug = store_.run_with(options_.bug, operation);
      if (generated_.has_bug) return;
    }
    store_.run(operation);
  }

  void choose(Operation& operation) {
    const auto put = [this](const std::string& key) {
      Request request{.kind = Request::Kind::kPut, .key = key, .value = "v" + std::to_string(next_value_++)};
      request.previous = percent(30);
      if (percent(options_.leased_percent)) request.lease = 1 + static_cast<int64_t>(random_.below(5));
      return request;
    };
    const std::string one = key();
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2:
        operation.success = {put(one)};
        return;
      case 3:
      case 4:
      case 5:
        operation.success = {{.kind = Request::Kind::kGet, .key = one}};
        return;
      case 6:
        operation.success = {{.kind = Request::Kind::kGet, .key = "k", .end = "l"}};
        operation.serializable = percent(60);
        return;
      case 7:
        operation.success = {{.kind = Request::Kind::kDelete, .key = one, .previous = percent(50)}};
        if (percent(30)) operation.success[0].end = std::string("k") + static_cast<char>('0' + options_.keys);
        return;
      case 8: {  // several keys at once
        const std::string other = key();
        operation.success = {put(one)};
        if (other != one) operation.success.push_back(put(other));
        operation.success.push_back({.kind = Request::Kind::kGet, .key = one});
        return;
      }
      case 9: {  // of an old revision
        const auto known = static_cast<uint64_t>(std::max<int64_t>(1, highest_seen_));
        operation.success = {{.kind = Request::Kind::kGet, .key = "k", .end = "l"}};
        operation.success[0].revision = 1 + static_cast<int64_t>(random_.below(known));
        return;
      }
      default: {  // compare and swap
        Compare compare{.key = one};
        const auto seen = seen_.find(one);
        if (seen != seen_.end() && percent(50)) {
          compare.target = Compare::Target::kValue;
          compare.value = seen->second.value;
        } else {
          compare.number = seen != seen_.end() ? seen->second.mod_revision : 0;
        }
        operation.compares = {compare};
        operation.success = {put(one)};
        operation.failure = {{.kind = Request::Kind::kGet, .key = one}};
      }
    }
  }

  void learn(const Operation& operation) {
    highest_seen_ = std::max(highest_seen_, operation.revision);
    told_[operation.member] = std::max(told_[operation.member], operation.revision);
    for (const Answer& answer : operation.answers) {
      for (const KeyValue& kv : answer.kvs) seen_[kv.key] = kv;
    }
    for (const Request& request : operation.taken()) {
      if (operation.outcome == Outcome::kOk && request.kind == Request::Kind::kPut) {
        seen_[request.key] = {.key = request.key, .value = request.value, .mod_revision = operation.revision};
      }
    }
  }

  // One of everything, and one of a single key, both with a resume in the middle.
  std::vector<WatchRecord> watches() {
    std::vector<WatchRecord> watches;
    for (const bool all : {true, false}) {
      WatchRecord watch{.name = all ? "all" : "k1", .key = all ? "k" : "k1", .end = all ? "l" : ""};
      watch.items.push_back({.kind = WatchItem::Kind::kStarted, .revision = 2});
      int64_t next = 2;
      for (const auto& [revision, events] : store_.events()) {
        WatchItem item{.revision = revision};
        for (const Event& event : events) {
          if (in_range(event.kv.key, watch.key, watch.end)) item.events.push_back(event);
        }
        if (random_.below(50) == 0) watch.items.push_back({.kind = WatchItem::Kind::kStarted, .revision = next});
        if (!item.events.empty()) {
          next = revision + 1;
          watch.items.push_back(std::move(item));
        }
        if (random_.below(50) == 0) {
          next = revision + 1;
          watch.items.push_back({.kind = WatchItem::Kind::kProgress, .revision = revision});
        }
      }
      watches.push_back(std::move(watch));
    }
    return watches;
  }

  void forget_revisions() {
    for (Operation& operation : generated_.record.operations) {
      operation.revision = 0;
      for (Answer& answer : operation.answers) {
        for (KeyValue& kv : answer.kvs) kv.create_revision = kv.mod_revision = kv.version = 0;
      }
    }
  }

  Operation& at(size_t number) { return generated_.record.operations[number]; }

  const GeneratorOptions options_;
  SeededRandom random_;
  GeneratorStore store_;
  Generated generated_;
  std::priority_queue<Step> queue_;
  uint64_t next_step_ = 0;
  Time now_{1'000'000};
  size_t begun_ = 0;
  size_t bug_from_ = 0;
  uint64_t next_value_ = 1;
  int64_t highest_seen_ = 1;
  std::map<std::string, KeyValue> seen_;
  std::map<uint64_t, int64_t> told_;       // by member: the highest revision it answered with
  std::map<size_t, int64_t> told_before_;  // the same, when a serializable read began
  std::map<uint64_t, int64_t> applied_ = {{1, 1}, {2, 1}, {3, 1}};
};

}  // namespace

Generated generate(const GeneratorOptions& options) { return Generator(options).run(); }

}  // namespace history
