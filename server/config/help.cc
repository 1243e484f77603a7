#include "config/flag.h"
#include "config/version.h"

namespace config {

namespace {

constexpr size_t kWidth = 100;

// `names` in lines of at most kWidth columns.
void append_wrapped(std::string& out, Flag::Standing standing) {
  size_t column = 0;
  for (const Flag& flag : flags_of_others()) {
    if (flag.standing != standing) continue;
    const size_t width = flag.name.size() + 3;
    if (column == 0 || column + width > kWidth) {
      out += column == 0 ? "  " : "\n  ";
      column = 2;
    }
    out.append("--").append(flag.name).append(" ");
    column += width;
  }
  out += "\n";
}

}  // namespace

std::string help_text() {
  std::string out;
  out.append("Usage: ").append(kProgramName).append(" [flags]\n\n");
  out +=
      "A coordination service that speaks etcd v3. Flags are etcd's: --flag value, --flag=value, -flag value, --switch "
      "or\n"
      "--switch=true. Each may come as a variable instead: --data-dir as CONCLAVE_DATA_DIR or ETCD_DATA_DIR.\n";
  std::string_view group;
  for (const Flag& flag : supported_flags()) {
    if (flag.group != group) {
      group = flag.group;
      out.append("\n").append(group).append(":\n");
    }
    out.append("  --")
        .append(flag.name)
        .append(" '")
        .append(flag.initial)
        .append("'\n      ")
        .append(flag.text)
        .append("\n");
  }
  out += "\nOther:\n  --version\n      Show the versions and exit.\n  --help\n      Show this and exit.\n";
  out += "\nFlags of etcd that are taken and have no effect here (a warning says why):\n";
  append_wrapped(out, Flag::Standing::kNoEffect);
  out += "\nFlags of etcd whose feature is not there yet (refused, unless their value asks for nothing):\n";
  append_wrapped(out, Flag::Standing::kMissing);
  return out;
}

}  // namespace config
