#include "binding.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

namespace conclave::c {

namespace {

static_assert(sizeof(conclave_error) == 512);
static_assert(static_cast<int>(Code::kUnauthenticated) == CONCLAVE_UNAUTHENTICATED);
static_assert(static_cast<int>(Outcome::kMayHaveHappened) == CONCLAVE_MAY_HAVE_HAPPENED);
static_assert(static_cast<int>(Outcome::kNeverWorks) == CONCLAVE_NEVER_WORKS);

constexpr std::int64_t kDefault = -1;

// As much of `text` as fits before a zero byte, without half a UTF-8 character at its end.
std::size_t cut(std::string_view text) noexcept {
  constexpr std::size_t kMost = CONCLAVE_MESSAGE_SIZE - 1;
  if (text.size() <= kMost) return text.size();
  std::size_t size = kMost;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) --size;
  return size;
}

}  // namespace

conclave_code succeeded(conclave_error* error) noexcept {
  if (error != nullptr) {
    error->code = CONCLAVE_OK;
    error->outcome = CONCLAVE_NOTHING_HAPPENED;
    error->message[0] = '\0';
  }
  return CONCLAVE_OK;
}

void fill(const Error& why, conclave_error& error) noexcept {
  error.code = static_cast<conclave_code>(why.code);
  error.outcome = static_cast<conclave_outcome>(why.outcome);
  const std::string text = why.endpoint.empty() ? why.message : why.message + " (" + why.endpoint + ")";
  const std::size_t size = cut(text);
  std::memcpy(error.message, text.data(), size);
  error.message[size] = '\0';
}

conclave_code failed(const Error& why, conclave_error* error) noexcept {
  if (error != nullptr) fill(why, *error);
  return static_cast<conclave_code>(why.code);
}

Error caught() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    std::fputs("conclave: out of memory\n", stderr);
    std::abort();
  } catch (const std::exception& e) {
    return {.code = Code::kInternal, .outcome = Outcome::kMayHaveHappened, .message = e.what()};
  } catch (...) {
    return {.code = Code::kInternal, .outcome = Outcome::kMayHaveHappened, .message = "an unknown exception"};
  }
}

Status need(std::initializer_list<Needed> all) {
  for (const Needed& one : all) {
    if (one.pointer == nullptr) return fail(Code::kInvalidArgument, std::string(one.name) + ": must not be NULL");
  }
  return {};
}

CallOptions call_of(std::int64_t timeout_ms, const conclave_stop* stop) {
  CallOptions call;
  if (timeout_ms != kDefault) call.timeout = std::chrono::milliseconds(timeout_ms);
  if (stop != nullptr) call.stop = stop->source.get_token();
  return call;
}

Status read_sized(const void* given, void* known, std::size_t known_size, std::size_t alignment, const char* name) {
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < sizeof size || size > kStructSizeMax || size % alignment != 0) {
    return fail(Code::kInvalidArgument,
                std::string(name) + ": struct_size is " + std::to_string(size) + ": begin with the struct's _INIT");
  }
  const auto* bytes = static_cast<const unsigned char*>(given);
  if (size > known_size && std::any_of(bytes + known_size, bytes + size, [](unsigned char b) { return b != 0; })) {
    return fail(Code::kInvalidArgument, std::string(name) + ": sets a member that this library does not know (" +
                                            std::to_string(size) + " bytes, known are " + std::to_string(known_size) +
                                            "): a newer libconclave_c is needed");
  }
  std::memcpy(known, given, std::min(size, known_size));
  std::memcpy(known, &known_size, sizeof known_size);
  return {};
}

std::string reason_of(const char (&buffer)[kReasonSize]) {
  return std::string(buffer, std::find(buffer, buffer + kReasonSize, '\0'));
}

}  // namespace conclave::c

conclave_str conclave_str_of(const char* text) { return {text, text != nullptr ? std::strlen(text) : 0}; }

conclave_stop* conclave_stop_new() { return new conclave_stop; }
void conclave_stop_request(conclave_stop* stop) {
  if (stop == nullptr) return;
  auto source = stop->source;  // a callback may free the handle
  source.request_stop();
}
int conclave_stop_requested(const conclave_stop* stop) { return stop != nullptr && stop->source.stop_requested(); }
void conclave_stop_free(conclave_stop* stop) { delete stop; }

// Both tables of names end with a zero byte each.
const char* conclave_code_name(conclave_code code) {
  if (code == CONCLAVE_OK) return "ok";
  const bool known = code > CONCLAVE_OK && code <= CONCLAVE_UNAUTHENTICATED;
  return conclave::to_string(known ? static_cast<conclave::Code>(code) : conclave::Code::kUnknown).data();
}
const char* conclave_outcome_name(conclave_outcome outcome) {
  const bool known = outcome >= CONCLAVE_NOTHING_HAPPENED && outcome <= CONCLAVE_NEVER_WORKS;
  return known ? conclave::to_string(static_cast<conclave::Outcome>(outcome)).data() : "unknown";
}
