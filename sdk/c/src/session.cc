#include "conclave_c/session.h"

#include "binding.h"
#include "handles.h"

using namespace conclave::c;
using conclave::fail;
using conclave::Status;

static_assert(static_cast<int>(conclave::SessionState::kLost) == CONCLAVE_SESSION_LOST);

conclave_code conclave_session_open(conclave_client* client, const conclave_session_options* options,
                                    conclave_session** session, conclave_error* error) {
  if (session != nullptr) *session = nullptr;
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"client", client}, {"session", session}}); !given) return given;
    auto read =
        options_of<conclave_session_options>(options, CONCLAVE_SESSION_OPTIONS_INIT, "conclave_session_options");
    if (!read) return fail(std::move(read.error()));
    conclave::SessionOptions wanted;
    wanted.ttl = std::chrono::seconds(read->ttl_s);
    wanted.call = call_of(read->timeout_ms, read->stop);
    if (read->on_state != nullptr) {
      wanted.on_state = [call = read->on_state, user = read->user](conclave::SessionState state,
                                                                   const std::string& why) {
        call(static_cast<conclave_session_state_code>(state), borrow(std::string_view(why)), user);
      };
    }
    auto opened = conclave::Session::open(client->client, std::move(wanted));
    if (!opened) return fail(std::move(opened.error()));
    *session = new conclave_session{std::move(*opened)};
    return {};
  });
}

int conclave_session_held(const conclave_session* session) { return session != nullptr && session->session.held(); }
conclave_session_state_code conclave_session_state(const conclave_session* session) {
  return session != nullptr ? static_cast<conclave_session_state_code>(session->session.state())
                            : CONCLAVE_SESSION_LOST;
}
int64_t conclave_session_lease(const conclave_session* session) {
  return session != nullptr ? number(session->session.lease()) : 0;
}
int64_t conclave_session_ttl_s(const conclave_session* session) {
  return session != nullptr ? session->session.ttl().count() : 0;
}

conclave_code conclave_session_close(conclave_session* session, int64_t timeout_ms, conclave_error* error) {
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"session", session}}); !given) return given;
    return session->session.close(call_of(timeout_ms));
  });
}
void conclave_session_orphan(conclave_session* session) {
  if (session != nullptr) session->session.orphan();
}
void conclave_session_free(conclave_session* session) { delete session; }
