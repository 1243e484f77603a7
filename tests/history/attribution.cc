#include "history/attribution.h"

#include <algorithm>
#include <utility>

namespace history {
namespace {

using KeyAndValue = std::pair<std::string, std::string>;

class Attributor {
 public:
  Attributor(const std::vector<Operation>& operations, const Events* events)
      : operations_(operations), events_(events) {}

  Attribution run() {
    for (const Operation& operation : operations_) {
      note_puts(operation);
      if (wrote(operation) && operation.revision != 0) note_acknowledged(operation);
    }
    for (const Operation& operation : operations_) {
      for (const Answer& answer : operation.answers) {
        for (const KeyValue& kv : answer.kvs) {
          note_seen(kv, [&operation] { return describe(operation); });
        }
      }
    }
    if (events_ != nullptr) {
      for (const auto& [revision, events] : *events_) {
        for (const Event& event : events) {
          if (!event.is_delete) {
            note_seen(event.kv, [&event] { return "event: " + describe(event); });
          }
        }
      }
    }
    for (const Operation& operation : operations_) {
      const bool is_open = (operation.outcome == Outcome::kUnknown && may_write(operation)) ||
                           (wrote(operation) && operation.revision == 0);
      if (is_open && !found_.contains(&operation)) result_.open.push_back(&operation);
    }
    return std::move(result_);
  }

 private:
  struct Writer {
    const Operation* operation = nullptr;
    bool succeeded = true;
  };

  void fault(const std::string& text) {
    if (result_.verdict.ok()) result_.verdict = violation(text);
  }

  void note_puts(const Operation& operation) {
    for (const bool succeeded : {true, false}) {
      for (const Request& request : succeeded ? operation.success : operation.failure) {
        if (request.kind == Request::Kind::kPut) {
          writers_[{request.key, request.value}].push_back({&operation, succeeded});
        }
      }
    }
  }

  void note_acknowledged(const Operation& operation) {
    const auto [at, is_new] = result_.writes.emplace(operation.revision, Written{&operation, operation.succeeded});
    if (!is_new) {
      fault("two writes were acknowledged with the same revision:\n  " + describe(*at->second.operation) + "\n  " +
            describe(operation) + "\n");
    }
  }

  template <class Where>
  void note_seen(const KeyValue& kv, const Where& where) {
    if (kv.mod_revision == 0) return;  // not told
    const auto writers = writers_.find({kv.key, kv.value});
    if (writers == writers_.end()) return fault("a value that nobody wrote:\n  " + where() + "\n");
    if (const auto at = result_.writes.find(kv.mod_revision); at != result_.writes.end()) {
      const bool same = std::any_of(writers->second.begin(), writers->second.end(), [&](const Writer& writer) {
        return writer.operation == at->second.operation && writer.succeeded == at->second.succeeded;
      });
      if (!same) {
        fault("another operation has this revision:\n  " + describe(*at->second.operation) + "\n  " + where() + "\n");
      }
      return;
    }
    // One that was refused never happened; one that was answered with another revision neither, for a second time.
    std::vector<Writer> possible;
    for (const Writer& writer : writers->second) {
      const bool answered = writer.operation->outcome == Outcome::kOk && writer.operation->revision != 0;
      if (writer.operation->outcome != Outcome::kFailed && !answered) possible.push_back(writer);
    }
    if (possible.empty()) {
      return fault("what was written by this operation is seen at a revision that is not its own:\n  " +
                   describe(*writers->second.front().operation) + "\n  " + where() + "\n");
    }
    if (possible.size() > 1) {  // the value is not unique: nobody can tell
      result_.unowned[kv.mod_revision].emplace(kv.key, kv);
      return;
    }
    const Writer& writer = possible.front();
    const auto [found, is_new] = found_.emplace(writer.operation, kv.mod_revision);
    if (!is_new && found->second != kv.mod_revision) {
      return fault("an operation happened twice, at revisions " + std::to_string(found->second) + " and " +
                   std::to_string(kv.mod_revision) + ":\n  " + describe(*writer.operation) + "\n  " + where() + "\n");
    }
    result_.writes.emplace(kv.mod_revision, Written{writer.operation, writer.succeeded});
  }

  const std::vector<Operation>& operations_;
  const Events* events_;
  Attribution result_;
  std::map<KeyAndValue, std::vector<Writer>> writers_;
  std::map<const Operation*, int64_t> found_;
};

}  // namespace

Attribution attribute(const std::vector<Operation>& operations, const Events* events) {
  return Attributor(operations, events).run();
}

}  // namespace history
