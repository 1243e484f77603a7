#include "config/flag.h"

#include <charconv>

#include "config/duration.h"

namespace config {

namespace {

constexpr std::string_view kExperimental = "experimental-";

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

// One spelling for equal values of a kind; nothing if the text is no value of it.
std::optional<std::string> canonical(Flag::Kind kind, std::string_view text) {
  switch (kind) {
    case Flag::Kind::kText:
      return std::string(text);
    case Flag::Kind::kSwitch:
      if (const auto value = parse_switch(text)) return *value ? "true" : "false";
      return std::nullopt;
    case Flag::Kind::kNumber:
      if (const auto value = parse_number(text)) return std::to_string(*value);
      return std::nullopt;
    case Flag::Kind::kDuration:
      if (const auto value = parse_duration(text)) return std::to_string(value->count());
      return std::nullopt;
  }
  return std::nullopt;
}

std::string_view legal_of(const Flag& flag) {
  if (!flag.legal.empty()) return flag.legal;
  switch (flag.kind) {
    case Flag::Kind::kSwitch:
      return "true or false";
    case Flag::Kind::kNumber:
      return "a whole number";
    case Flag::Kind::kDuration:
      return "a duration such as 300ms, 10s or 5m";
    case Flag::Kind::kText:
      break;
  }
  return flag.values;
}

auto illegal(const Flag& flag, std::string_view source, std::string_view value) {
  return fail(Code::kInvalidArgument,
              std::string(source) + ": illegal value " + quoted(value) + "; legal: " + std::string(legal_of(flag)));
}

bool among(const Flag& flag, std::string_view value) {
  const auto wanted = canonical(flag.kind, value);
  std::string_view rest = flag.values;
  while (true) {
    const size_t bar = rest.find('|');
    if (canonical(flag.kind, rest.substr(0, bar)) == wanted) return true;
    if (bar == std::string_view::npos) return false;
    rest.remove_prefix(bar + 1);
  }
}

}  // namespace

std::optional<bool> parse_switch(std::string_view text) {
  for (const std::string_view yes : {"1", "t", "T", "TRUE", "true", "True"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"0", "f", "F", "FALSE", "false", "False"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

std::optional<int64_t> parse_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

const Flag* find_flag(std::string_view name) {
  for (const auto* table : {&supported_flags(), &flags_of_others()}) {
    for (const Flag& flag : *table) {
      if (flag.name == name) return &flag;
    }
  }
  if (name.starts_with(kExperimental)) return find_flag(name.substr(kExperimental.size()));
  return nullptr;
}

Status apply_flag(const Flag& flag, std::string_view source, std::string_view value, Draft& draft) {
  if (!canonical(flag.kind, value)) return illegal(flag, source, value);
  switch (flag.standing) {
    case Flag::Standing::kWorks: {
      TRY_ASSIGN(const bool stored, flag.store(draft, value));
      if (!stored) return illegal(flag, source, value);
      return {};
    }
    case Flag::Standing::kNoEffect:
      if (!flag.values.empty() && !among(flag, value)) return illegal(flag, source, value);
      draft.warnings.push_back(std::string(source) + " has no effect: " + std::string(flag.text));
      return {};
    case Flag::Standing::kMissing:
      if (among(flag, value)) return {};
      return fail(Code::kInvalidArgument,
                  std::string(source) + ": " + quoted(value) + " is not supported yet: " + std::string(flag.text));
  }
  return {};
}

}  // namespace config
