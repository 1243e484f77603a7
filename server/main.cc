// The server: reads its flags and runs (run.h). Exit code 1: wrong flags, or what run() says.
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "base/log.h"
#include "config/initial_cluster.h"
#include "config/parse.h"
#include "config/version.h"
#include "descriptors.h"
#include "protobuf_log.h"
#include "run.h"

extern char** environ;

namespace {

// What the flags alone do not tell.
Status check_flags(config::Parsed& parsed) {
  std::error_code ignored;
  if (std::filesystem::exists(parsed.options.data_dir + "/CURRENT", ignored)) return {};  // a member's already
  return config::check_first_start(parsed.options, config::addresses_of, parsed.warnings);
}

}  // namespace

int main(int argc, char** argv) {
  auto parsed = config::parse(argc, argv, environ);
  if (!parsed) {
    std::fprintf(stderr, "conclave: %s\n", parsed.error().message.c_str());
    return 1;
  }
  if (parsed->print) {
    std::fputs(parsed->print->c_str(), stdout);
    return 0;
  }
  if (auto checked = check_flags(*parsed); !checked) {
    std::fprintf(stderr, "conclave: %s\n", checked.error().message.c_str());
    return 1;
  }
  const auto descriptors = own_descriptors(parsed->options);
  if (!descriptors) {
    std::fprintf(stderr, "conclave: %s\n", descriptors.error().message.c_str());
    return 1;
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is told as a full disk
  const sigset_t signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  if (auto opened = open_log(parsed->options.log); !opened) {
    std::fprintf(stderr, "conclave: %s\n", opened.error().message.c_str());
    return 1;
  }
  log_for_protobuf();
  for (const std::string& warning : parsed->warnings) log_warn(warning);
  log_info(
      "starting conclave",
      {{"version", config::kProgramVersion}, {"name", parsed->options.name}, {"data_dir", parsed->options.data_dir}});
  log_info("open files", {{"limit", descriptors->limit}, {"client_connections_max", descriptors->clients_max}});
  return run(parsed->options, *descriptors);
}
