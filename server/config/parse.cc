#include "config/parse.h"

#include <algorithm>
#include <thread>

#include "config/flag.h"
#include "config/version.h"

namespace config {

namespace {

constexpr std::string_view kPrefixes[] = {"ETCD_", "CONCLAVE_"};  // the later one wins

// Variables with our prefix that are the SDK's and the tests', not the server's.
constexpr std::string_view kNotTheServers[] = {"CONCLAVE_ENDPOINTS",  "CONCLAVE_USER",       "CONCLAVE_PASSWORD_FILE",
                                               "CONCLAVE_CA_FILE",    "CONCLAVE_KEY_PREFIX", "CONCLAVE_BIN",
                                               "CONCLAVE_CONFORMANCE"};

struct Given {
  const Flag* flag = nullptr;
  std::string source;  // "--name" or "ETCD_NAME"
  std::string value;
};

// The last one of a flag wins, whatever its source.
void remember(std::vector<Given>& all, Given given) {
  std::erase_if(all, [&](const Given& earlier) { return earlier.flag == given.flag; });
  all.push_back(std::move(given));
}

// "ETCD_DATA_DIR" -> "data-dir".
std::string flag_name(std::string_view variable, std::string_view prefix) {
  std::string name(variable.substr(prefix.size()));
  for (char& c : name) c = c == '_' ? '-' : (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  return name;
}

void read_environment(const char* const* environ, std::vector<Given>& all, std::vector<std::string>& warnings) {
  for (const std::string_view prefix : kPrefixes) {
    for (const char* const* entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      const std::string_view text = *entry;
      const std::string_view variable = text.substr(0, text.find('='));
      if (!variable.starts_with(prefix)) continue;
      if (std::find(std::begin(kNotTheServers), std::end(kNotTheServers), variable) != std::end(kNotTheServers))
        continue;
      const std::string_view value = text.substr(std::min(text.size(), variable.size() + 1));
      const bool upper = std::none_of(variable.begin(), variable.end(), [](char c) { return c >= 'a' && c <= 'z'; });
      const Flag* flag = upper ? find_flag(flag_name(variable, prefix)) : nullptr;
      if (flag == nullptr) {
        warnings.push_back("unrecognized environment variable " + std::string(variable));
      } else if (!value.empty()) {
        remember(all, {flag, std::string(variable), std::string(value)});
      }
    }
  }
}

struct Arguments {
  std::vector<Given> given;
  bool help = false;
  bool version = false;
};

Result<Arguments> read_arguments(int argc, const char* const* argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const size_t dashes = argument.starts_with("--") ? 2 : argument.starts_with('-') ? 1 : 0;
    std::string_view name = argument.substr(dashes);
    if (dashes == 0 || name.empty()) {
      return fail(Code::kInvalidArgument, "\"" + std::string(argument) + "\" is not a valid flag (see --help)");
    }
    std::optional<std::string> value;
    if (const size_t equals = name.find('='); equals != std::string_view::npos) {
      value = name.substr(equals + 1);
      name = name.substr(0, equals);
    }
    const std::string source = "--" + std::string(name);
    const bool asks_help = name == "help" || name == "h";
    if (asks_help || name == "version") {
      const auto on = parse_switch(value.value_or("true"));
      if (!on) return fail(Code::kInvalidArgument, source + ": illegal value \"" + *value + "\"; legal: true or false");
      (asks_help ? arguments.help : arguments.version) = *on;
      continue;
    }
    const Flag* flag = find_flag(name);
    if (flag == nullptr) {
      return fail(Code::kInvalidArgument, "flag provided but not defined: " + source + " (see --help)");
    }
    if (!value && flag->kind == Flag::Kind::kSwitch) value = "true";
    if (!value) {
      if (i + 1 == argc) return fail(Code::kInvalidArgument, "flag needs an argument: " + source);
      value = argv[++i];
    }
    remember(arguments.given, {flag, source, std::move(*value)});
  }
  return arguments;
}

std::string version_text() {
  std::string out;
  out.append("etcd Version: ").append(kEtcdVersion).append("\n");
  out.append("Conclave Version: ").append(kProgramVersion).append("\n");
  return out;
}

}  // namespace

Result<Parsed> parse(int argc, const char* const* argv, const char* const* environ) {
  TRY_ASSIGN(Arguments arguments, read_arguments(argc, argv));
  Parsed parsed;
  if (arguments.help || arguments.version) {
    parsed.print = arguments.help ? help_text() : version_text();
    return parsed;
  }
  Draft draft;
  const unsigned processors = std::thread::hardware_concurrency();
  draft.options.io_threads = std::clamp(processors / 2, 1U, 64U);
  std::vector<Given> all;
  read_environment(environ, all, draft.warnings);
  for (Given& given : arguments.given) remember(all, std::move(given));
  for (const Given& given : all) TRY(apply_flag(*given.flag, given.source, given.value, draft));
  TRY(check(draft));
  parsed.options = std::move(draft.options);
  parsed.warnings = std::move(draft.warnings);
  return parsed;
}

}  // namespace config
