// Runs the C program c_scenarios, once for each scenario, against a server of its own.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "test_server.h"

namespace conclave {
namespace {

// What the program ended with: 0 when all was as the scenario says; its own lines are on stderr.
int run_scenario(std::string name) {
  testing::TestServer server;
  std::string program = CONCLAVE_C_SCENARIOS;
  std::string endpoint = server.endpoint();
  char* arguments[] = {program.data(), name.data(), endpoint.data(), nullptr};
  pid_t process = -1;
  if (::posix_spawn(&process, program.c_str(), nullptr, nullptr, arguments, environ) != 0) return -1;
  int status = 0;
  if (::waitpid(process, &status, 0) != process) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

class C : public ::testing::TestWithParam<const char*> {};

TEST_P(C, Scenario) { EXPECT_EQ(run_scenario(GetParam()), 0); }

INSTANTIATE_TEST_SUITE_P(, C,
                         ::testing::Values("put_and_get", "transactions", "watch_sees_a_change", "errors_are_filled",
                                           "null_is_fine", "struct_sizes", "environment", "lock_excludes",
                                           "lock_is_lost", "register_and_discover", "health_and_refusals",
                                           "configuration"),
                         [](const auto& info) { return std::string(info.param); });

TEST(CScenarios, ThatAreUnknownFail) { EXPECT_EQ(run_scenario("no_such_scenario"), 2); }

}  // namespace
}  // namespace conclave
