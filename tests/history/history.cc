#include "history/history.h"

#include <algorithm>
#include <cstdio>

namespace history {
namespace {

constexpr size_t kTextMax = 40;  // of a key or value in a description

std::string shown(const std::string& text) {
  std::string out;
  for (const char c : text.substr(0, kTextMax)) {
    if (static_cast<unsigned char>(c) < 32) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\x%02x", static_cast<unsigned char>(c));
      out += escaped;
    } else {
      out += c;
    }
  }
  return text.size() > kTextMax ? out + "..(" + std::to_string(text.size()) + ")" : out;
}

const char* text_of(Compare::Target target) {
  switch (target) {
    case Compare::Target::kValue:
      return "value";
    case Compare::Target::kModRevision:
      return "mod";
    case Compare::Target::kCreateRevision:
      return "create";
    case Compare::Target::kVersion:
      return "version";
  }
  return "?";
}

const char* text_of(Compare::Relation relation) {
  switch (relation) {
    case Compare::Relation::kEqual:
      return "=";
    case Compare::Relation::kNotEqual:
      return "!=";
    case Compare::Relation::kLess:
      return "<";
    case Compare::Relation::kGreater:
      return ">";
  }
  return "?";
}

std::string describe(const Request& request) {
  std::string keys = shown(request.key);
  if (!request.end.empty()) keys = "[" + keys + ", " + shown(request.end) + ")";
  switch (request.kind) {
    case Request::Kind::kGet:
      return "get " + keys + (request.revision != 0 ? " at " + std::to_string(request.revision) : "");
    case Request::Kind::kPut:
      return "put " + keys + "=" + shown(request.value) +
             (request.lease != 0 ? " lease " + std::to_string(request.lease) : "");
    case Request::Kind::kDelete:
      return "delete " + keys;
  }
  return "?";
}

std::string describe(const std::vector<Request>& requests) {
  std::string out;
  for (const Request& request : requests) out += (out.empty() ? "" : "; ") + describe(request);
  return out;
}

std::string describe_request(const Operation& operation) {
  std::string out = operation.serializable ? "serializable " : "";
  if (operation.compares.empty()) return out + describe(operation.success);
  std::string compares;
  for (const Compare& compare : operation.compares) {
    compares += (compares.empty() ? "" : " and ") + std::string(text_of(compare.target)) + "(" + shown(compare.key) +
                ")" + text_of(compare.relation) +
                (compare.target == Compare::Target::kValue ? shown(compare.value) : std::to_string(compare.number));
  }
  out += "if " + compares + " then {" + describe(operation.success) + "}";
  return operation.failure.empty() ? out : out + " else {" + describe(operation.failure) + "}";
}

std::string describe_answer(const Operation& operation) {
  if (operation.outcome == Outcome::kFailed) return "refused";
  if (operation.outcome == Outcome::kUnknown) return "unknown";
  std::string out = operation.revision != 0 ? "revision " + std::to_string(operation.revision) : "done";
  if (!operation.compares.empty()) out += operation.succeeded ? ", succeeded" : ", did not hold";
  for (size_t i = 0; i < operation.answers.size() && i < operation.taken().size(); ++i) {
    const Request& request = operation.taken()[i];
    const Answer& answer = operation.answers[i];
    if (request.kind == Request::Kind::kDelete) out += ", deleted " + std::to_string(answer.deleted);
    if (request.kind != Request::Kind::kGet && !request.previous) continue;
    out += request.kind == Request::Kind::kGet ? ", [" : ", before [";
    for (size_t k = 0; k < answer.kvs.size(); ++k) out += (k == 0 ? "" : ", ") + describe(answer.kvs[k]);
    out += "]";
  }
  return out;
}

}  // namespace

bool in_range(std::string_view key, const std::string& from, const std::string& end) {
  if (end.empty()) return key == from;
  return key >= from && (end == std::string(1, '\0') || key < end);
}

bool wrote(const Operation& operation) {
  if (operation.outcome != Outcome::kOk) return false;
  for (size_t i = 0; i < operation.taken().size(); ++i) {
    const Request& request = operation.taken()[i];
    if (request.kind == Request::Kind::kPut) return true;
    const bool has_answer = i < operation.answers.size();
    if (request.kind == Request::Kind::kDelete && has_answer && operation.answers[i].deleted > 0) return true;
  }
  return false;
}

bool may_write(const Operation& operation) {
  const auto writes = [](const Request& request) { return request.kind != Request::Kind::kGet; };
  return std::any_of(operation.success.begin(), operation.success.end(), writes) ||
         std::any_of(operation.failure.begin(), operation.failure.end(), writes);
}

std::string describe(Time time) {
  if (time == kNever) return "never";
  char text[32];
  std::snprintf(text, sizeof(text), "%.6f", static_cast<double>(time.count()) / 1e9);
  return text;
}

std::string describe(const KeyValue& kv) {
  return shown(kv.key) + "=" + shown(kv.value) + " mod " + std::to_string(kv.mod_revision) + " create " +
         std::to_string(kv.create_revision) + " version " + std::to_string(kv.version) +
         (kv.lease != 0 ? " lease " + std::to_string(kv.lease) : "");
}

std::string describe(const Event& event) {
  return event.is_delete ? "delete " + shown(event.kv.key) + " at " + std::to_string(event.kv.mod_revision)
                         : "put " + describe(event.kv);
}

std::string describe(const Operation& operation) {
  return describe(operation.call) + " .. " + describe(operation.returned) + " client " +
         std::to_string(operation.client) +
         (operation.member != 0 ? " member " + std::to_string(operation.member) : "") + ": " +
         describe_request(operation) + " -> " + describe_answer(operation);
}

}  // namespace history
