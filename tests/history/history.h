// What clients of a store did and heard, in the words that all checkers here share. Plain values: a simulation fills
// them directly, process tests through a file of JSON lines (record_file.h).
//
// Times are of one clock that all clients share (virtual, or one machine's monotonic clock). Written values should be
// unique: then a value that is seen tells which request wrote it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace history {

using Time = std::chrono::nanoseconds;
inline constexpr Time kNever = Time::max();

enum class Outcome : uint8_t {
  kOk,       // answered
  kFailed,   // refused: nothing happened
  kUnknown,  // no answer, or one that leaves it open: may have happened at any time after the call, also never
};

struct KeyValue {
  std::string key = {};
  std::string value = {};
  int64_t create_revision = 0;
  int64_t mod_revision = 0;
  int64_t version = 0;
  int64_t lease = 0;
  friend bool operator==(const KeyValue&, const KeyValue&) = default;
};

struct Compare {
  enum class Target : uint8_t { kValue, kModRevision, kCreateRevision, kVersion };
  enum class Relation : uint8_t { kEqual, kNotEqual, kLess, kGreater };
  std::string key = {};
  Target target = Target::kModRevision;
  Relation relation = Relation::kEqual;
  int64_t number = 0;
  std::string value = {};
};

// One part of an operation. `end` as in etcd: empty, the key alone; "\0", everything from the key on; else [key, end).
struct Request {
  enum class Kind : uint8_t { kGet, kPut, kDelete };
  Kind kind = Kind::kGet;
  std::string key = {};
  std::string end = {};
  std::string value = {};  // of a put
  int64_t lease = 0;       // of a put
  bool previous = false;   // of a put or delete: the answer has what was there before
  int64_t revision = 0;    // of a get: as of then; 0: now
};

struct Answer {
  std::vector<KeyValue> kvs = {};  // of a get: all that is there (no limit); of the others: what was there before
  int64_t deleted = 0;
};

// Everything is a transaction: a plain get, put or delete has no compares and one request in `success`.
struct Operation {
  uint64_t client = 0;
  Time call{};
  Time returned = kNever;  // kNever unless the outcome is known
  Outcome outcome = Outcome::kUnknown;
  bool serializable = false;  // a read from whatever the member had
  uint64_t member = 0;        // who answered; a member that was restarted counts as another one
  std::vector<Compare> compares = {};
  std::vector<Request> success = {};
  std::vector<Request> failure = {};

  // When kOk.
  bool succeeded = true;             // the compares held
  int64_t revision = 0;              // of the header; 0: the client does not know
  std::vector<Answer> answers = {};  // one for each request of the branch that was taken

  const std::vector<Request>& taken() const { return succeeded ? success : failure; }
};

struct Event {
  bool is_delete = false;
  KeyValue kv = {};  // of a delete: key and mod_revision
  friend bool operator==(const Event&, const Event&) = default;
};
// What happened to the key space, revision by revision; revisions that changed nothing a test looks at may be missing.
using Events = std::map<int64_t, std::vector<Event>>;

struct Verdict {
  enum class Kind : uint8_t {
    kOk,
    kViolation,
    kUndecided,  // a limit was reached
  };
  Kind kind = Kind::kOk;
  std::string text = {};  // what is wrong, then the operations that show it, one a line
  bool ok() const { return kind == Kind::kOk; }
};
inline Verdict violation(std::string text) { return {Verdict::Kind::kViolation, std::move(text)}; }

bool in_range(std::string_view key, const std::string& from, const std::string& end);
// Of an answered operation: it changed the store, so that its revision is its own.
bool wrote(const Operation& operation);
// May change the store when the outcome is unknown.
bool may_write(const Operation& operation);

// One line.
std::string describe(const Operation& operation);
std::string describe(const KeyValue& kv);
std::string describe(const Event& event);
std::string describe(Time time);  // in seconds

}  // namespace history
