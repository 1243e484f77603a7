#include "history/record_file.h"

#include <google/protobuf/util/json_util.h>
#include <history/record.pb.h>

#include <istream>
#include <ostream>

namespace history {
namespace {

constexpr double kNanoseconds = 1e9;

Time time_of(double seconds) { return Time(static_cast<int64_t>(seconds * kNanoseconds + 0.5)); }
double seconds_of(Time time) { return static_cast<double>(time.count()) / kNanoseconds; }

Outcome outcome_of(record::Outcome outcome) {
  return outcome == record::OK ? Outcome::kOk : outcome == record::FAILED ? Outcome::kFailed : Outcome::kUnknown;
}
record::Outcome outcome_of(Outcome outcome) {
  return outcome == Outcome::kOk ? record::OK : outcome == Outcome::kFailed ? record::FAILED : record::UNKNOWN;
}

KeyValue from(const record::KeyValue& kv) {
  return {kv.key(), kv.value(), kv.create_revision(), kv.mod_revision(), kv.version(), kv.lease()};
}
void to(const KeyValue& kv, record::KeyValue* out) {
  out->set_key(kv.key);
  out->set_value(kv.value);
  out->set_create_revision(kv.create_revision);
  out->set_mod_revision(kv.mod_revision);
  out->set_version(kv.version);
  out->set_lease(kv.lease);
}

constexpr Compare::Target kTargets[] = {Compare::Target::kModRevision, Compare::Target::kValue,
                                        Compare::Target::kCreateRevision, Compare::Target::kVersion};

Compare from(const record::Compare& compare) {
  return {.key = compare.key(),
          .target = kTargets[compare.target() % 4],
          .relation = static_cast<Compare::Relation>(compare.relation()),
          .number = compare.number(),
          .value = compare.value()};
}
void to(const Compare& compare, record::Compare* out) {
  out->set_key(compare.key);
  for (int i = 0; i < 4; ++i) {
    if (kTargets[i] == compare.target) out->set_target(static_cast<record::Compare::Target>(i));
  }
  out->set_relation(static_cast<record::Compare::Relation>(compare.relation));
  out->set_number(compare.number);
  out->set_value(compare.value);
}

Request from(const record::Request& request) {
  return {.kind = static_cast<Request::Kind>(request.kind()),
          .key = request.key(),
          .end = request.end(),
          .value = request.value(),
          .lease = request.lease(),
          .previous = request.previous(),
          .revision = request.revision()};
}
void to(const Request& request, record::Request* out) {
  out->set_kind(static_cast<record::Request::Kind>(request.kind));
  out->set_key(request.key);
  out->set_end(request.end);
  out->set_value(request.value);
  out->set_lease(request.lease);
  out->set_previous(request.previous);
  out->set_revision(request.revision);
}

Operation from(const record::Operation& in) {
  Operation operation{.client = in.client(),
                      .call = time_of(in.call()),
                      .outcome = outcome_of(in.outcome()),
                      .serializable = in.serializable(),
                      .member = in.member(),
                      .succeeded = !in.failed_compares(),
                      .revision = in.revision()};
  if (operation.outcome != Outcome::kUnknown) operation.returned = time_of(in.returned());
  for (const auto& compare : in.compares()) operation.compares.push_back(from(compare));
  for (const auto& request : in.success()) operation.success.push_back(from(request));
  for (const auto& request : in.failure()) operation.failure.push_back(from(request));
  for (const auto& answer : in.answers()) {
    Answer& out = operation.answers.emplace_back();
    out.deleted = answer.deleted();
    for (const auto& kv : answer.kvs()) out.kvs.push_back(from(kv));
  }
  return operation;
}
void to(const Operation& operation, record::Operation* out) {
  out->set_client(operation.client);
  out->set_call(seconds_of(operation.call));
  if (operation.returned != kNever) out->set_returned(seconds_of(operation.returned));
  out->set_outcome(outcome_of(operation.outcome));
  out->set_serializable(operation.serializable);
  out->set_member(operation.member);
  out->set_failed_compares(!operation.succeeded);
  out->set_revision(operation.revision);
  for (const Compare& compare : operation.compares) to(compare, out->add_compares());
  for (const Request& request : operation.success) to(request, out->add_success());
  for (const Request& request : operation.failure) to(request, out->add_failure());
  for (const Answer& answer : operation.answers) {
    auto* one = out->add_answers();
    one->set_deleted(answer.deleted);
    for (const KeyValue& kv : answer.kvs) to(kv, one->add_kvs());
  }
}

constexpr WatchItem::Kind kItems[] = {WatchItem::Kind::kEvents, WatchItem::Kind::kStarted, WatchItem::Kind::kProgress,
                                      WatchItem::Kind::kCompacted};

void add(const record::WatchItem& in, Record& record) {
  WatchRecord* watch = nullptr;
  for (WatchRecord& one : record.watches) {
    if (one.name == in.watch()) watch = &one;
  }
  if (watch == nullptr) {
    watch = &record.watches.emplace_back(WatchRecord{.name = in.watch(), .key = in.key(), .end = in.end()});
    watch->puts = !in.no_puts();
    watch->deletes = !in.no_deletes();
  }
  WatchItem& item = watch->items.emplace_back();
  item.kind = kItems[in.kind() % 4];
  item.at = time_of(in.at());
  item.revision = in.revision();
  for (const auto& event : in.events()) item.events.push_back({event.is_delete(), from(event.kv())});
}
void to(const WatchRecord& watch, size_t at, record::WatchItem* out) {
  const WatchItem& item = watch.items[at];
  out->set_watch(watch.name);
  out->set_key(watch.key);
  out->set_end(watch.end);
  out->set_no_puts(!watch.puts);
  out->set_no_deletes(!watch.deletes);
  for (int i = 0; i < 4; ++i) {
    if (kItems[i] == item.kind) out->set_kind(static_cast<record::WatchItem::Kind>(i));
  }
  out->set_at(seconds_of(item.at));
  out->set_revision(item.revision);
  for (const Event& event : item.events) {
    auto* one = out->add_events();
    one->set_is_delete(event.is_delete);
    to(event.kv, one->mutable_kv());
  }
}

constexpr LeaseCall::Kind kCalls[] = {LeaseCall::Kind::kKeepAlive, LeaseCall::Kind::kGrant, LeaseCall::Kind::kRevoke};

LeaseCall from(const record::LeaseCall& in) {
  LeaseCall call{.kind = kCalls[in.kind() % 3],
                 .lease = in.lease(),
                 .client = in.client(),
                 .call = time_of(in.call()),
                 .outcome = outcome_of(in.outcome()),
                 .ttl_seconds = in.ttl_seconds()};
  if (call.outcome != Outcome::kUnknown) call.returned = time_of(in.returned());
  return call;
}
void to(const LeaseCall& call, record::LeaseCall* out) {
  for (int i = 0; i < 3; ++i) {
    if (kCalls[i] == call.kind) out->set_kind(static_cast<record::LeaseCall::Kind>(i));
  }
  out->set_lease(call.lease);
  out->set_client(call.client);
  out->set_call(seconds_of(call.call));
  if (call.returned != kNever) out->set_returned(seconds_of(call.returned));
  out->set_outcome(outcome_of(call.outcome));
  out->set_ttl_seconds(call.ttl_seconds);
}

Status add(const record::Line& line, Record& record) {
  switch (line.what_case()) {
    case record::Line::kOperation:
      record.operations.push_back(from(line.operation()));
      return {};
    case record::Line::kWatch:
      add(line.watch(), record);
      return {};
    case record::Line::kLeaseCall:
      record.lease_calls.push_back(from(line.lease_call()));
      return {};
    case record::Line::kLeaseSighting: {
      const auto& in = line.lease_sighting();
      record.lease_sightings.push_back({.lease = in.lease(),
                                        .key = in.key(),
                                        .call = time_of(in.call()),
                                        .returned = time_of(in.returned()),
                                        .there = in.there()});
      return {};
    }
    case record::Line::kLockHold: {
      const auto& in = line.lock_hold();
      record.holds.push_back({.lock = in.lock(),
                              .client = in.client(),
                              .token = in.token(),
                              .acquired = time_of(in.acquired()),
                              .until = in.until() > 0 ? time_of(in.until()) : kNever});
      return {};
    }
    case record::Line::kFencedUse: {
      const auto& in = line.fenced_use();
      record.uses.push_back({.lock = in.lock(), .client = in.client(), .token = in.token()});
      return {};
    }
    case record::Line::WHAT_NOT_SET:
      break;
  }
  return fail(Code::kInvalidArgument, "is none of operation, watch, lease_call, lease_sighting, lock_hold, fenced_use");
}

void print(const record::Line& line, std::ostream& out) {
  std::string text;
  if (google::protobuf::util::MessageToJsonString(line, &text).ok()) out << text << '\n';
}

}  // namespace

void write_record(const Record& record, std::ostream& out) {
  record::Line line;
  for (const Operation& operation : record.operations) {
    line.Clear();
    to(operation, line.mutable_operation());
    print(line, out);
  }
  for (const WatchRecord& watch : record.watches) {
    for (size_t i = 0; i < watch.items.size(); ++i) {
      line.Clear();
      to(watch, i, line.mutable_watch());
      print(line, out);
    }
  }
  for (const LeaseCall& call : record.lease_calls) {
    line.Clear();
    to(call, line.mutable_lease_call());
    print(line, out);
  }
  for (const LeaseSighting& sighting : record.lease_sightings) {
    auto& one = *line.mutable_lease_sighting();
    one.set_lease(sighting.lease);
    one.set_key(sighting.key);
    one.set_call(seconds_of(sighting.call));
    one.set_returned(seconds_of(sighting.returned));
    one.set_there(sighting.there);
    print(line, out);
  }
  for (const LockHold& hold : record.holds) {
    line.Clear();
    auto& one = *line.mutable_lock_hold();
    one.set_lock(hold.lock);
    one.set_client(hold.client);
    one.set_token(hold.token);
    one.set_acquired(seconds_of(hold.acquired));
    if (hold.until != kNever) one.set_until(seconds_of(hold.until));
    print(line, out);
  }
  for (const FencedUse& use : record.uses) {
    auto& one = *line.mutable_fenced_use();
    one.set_lock(use.lock);
    one.set_client(use.client);
    one.set_token(use.token);
    print(line, out);
  }
}

::Result<Record> read_record(std::istream& in) {
  Record record;
  std::string text;
  for (size_t number = 1; std::getline(in, text); ++number) {
    if (text.empty()) continue;
    record::Line line;
    const auto parsed = google::protobuf::util::JsonStringToMessage(text, &line);
    Status added = parsed.ok() ? add(line, record) : fail(Code::kInvalidArgument, std::string(parsed.message()));
    if (!added) return fail(added.error().code, "line " + std::to_string(number) + ": " + added.error().message);
  }
  return record;
}

}  // namespace history
