#include "conclave_c/client.h"

#include <memory>

#include "binding.h"
#include "handles.h"

using namespace conclave::c;
using conclave::Client;
using conclave::ClientOptions;
using conclave::Status;

namespace {

static_assert(static_cast<int>(conclave::LogLevel::kError) == CONCLAVE_LOG_ERROR);
static_assert(static_cast<int>(conclave::ConnectionState::kClosed) == CONCLAVE_CLOSED);

constexpr std::int64_t kThreadsMax = 64;

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    parts.emplace_back(list.substr(0, comma));
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return parts;
}

conclave::Result<ClientOptions> options_from(const conclave_client_options* given) {
  if (given == nullptr) return ClientOptions::from_environment();
  auto read = options_of<conclave_client_options>(given, CONCLAVE_CLIENT_OPTIONS_INIT, "conclave_client_options");
  if (!read) return conclave::fail(std::move(read.error()));
  if (read->callback_threads < 1 || read->callback_threads > kThreadsMax)
    return conclave::fail(conclave::Code::kInvalidArgument, "callback_threads: 1 to 64");
  ClientOptions options;
  options.endpoints = split(view(read->endpoints));
  options.key_prefix = text(read->key_prefix);
  if (read->call_timeout_ms != -1) options.call_timeout = std::chrono::milliseconds(read->call_timeout_ms);
  options.callback_threads = static_cast<int>(read->callback_threads);
  if (read->log != nullptr) {
    options.log = [log = read->log, user = read->user](const conclave::LogLine& line) {
      log(static_cast<conclave_log_level>(line.level), borrow(std::string_view(line.text)), user);
    };
  }
  return options;
}

}  // namespace

conclave_code conclave_client_open(const conclave_client_options* options, conclave_client** client,
                                   conclave_error* error) {
  if (client != nullptr) *client = nullptr;
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"client", client}}); !given) return given;
    auto read = options_from(options);
    if (!read) return conclave::fail(std::move(read.error()));
    auto opened = Client::open(std::move(*read));
    if (!opened) return conclave::fail(std::move(opened.error()));
    *client = new conclave_client{std::move(*opened)};
    return {};
  });
}

conclave_connection_state conclave_client_state(const conclave_client* client) {
  return client != nullptr ? static_cast<conclave_connection_state>(client->client.state()) : CONCLAVE_CLOSED;
}

conclave_code conclave_client_close(conclave_client* client, int64_t timeout_ms, conclave_error* error) {
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"client", client}}); !given) return given;
    return client->client.close(call_of(timeout_ms));
  });
}

void conclave_client_free(conclave_client* client) { delete client; }
