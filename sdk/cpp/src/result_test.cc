#include "conclave/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <type_traits>

#include "conclave/conclave.h"

namespace conclave {
namespace {

Result<std::unique_ptr<int>> seven() { return std::make_unique<int>(7); }
Result<std::unique_ptr<int>> nothing() { return fail(Code::kUnavailable, "no member answers"); }

TEST(Result, HandsOutMoveOnlyValues) {
  const auto value = seven().or_throw();
  EXPECT_EQ(*value, 7);
}

TEST(Result, ThrowsTheErrorItCarries) {
  try {
    (void)nothing().or_throw();
    FAIL() << "no exception";
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().code, Code::kUnavailable);
    EXPECT_STREQ(e.what(), "unavailable: no member answers (nothing happened)");
  }
  EXPECT_THROW(Status(fail(Code::kAborted, "x")).or_throw(), Exception);
}

TEST(ResultDeathTest, StopsWithTheErrorsTextWhenTheValueOfAFailureIsUsed) {
  const auto failed = nothing();
  EXPECT_DEATH((void)*failed, "no member answers");
  EXPECT_DEATH((void)failed->get(), "no member answers");
}

TEST(Result, InvalidArgumentsNeverWork) {
  EXPECT_EQ(Status(fail(Code::kInvalidArgument, "x")).error().outcome, Outcome::kNeverWorks);
  EXPECT_EQ(Status(fail(Code::kUnavailable, "x")).error().outcome, Outcome::kNothingHappened);
}

TEST(Result, NamesTheEndpoint) {
  EXPECT_EQ(
      to_string(Error{
          .code = Code::kInternal, .outcome = Outcome::kMayHaveHappened, .message = "boom", .endpoint = "http://a:1"}),
      "internal: boom (http://a:1; may have happened)");
}

template <class M>
concept Lockable = requires(M m) {
  std::lock_guard<M>{m};
  m.unlock();
};
static_assert(!Lockable<Mutex>, "lock_guard would ignore a failed lock");
static_assert(!std::is_constructible_v<Mutex, Session, std::string>, "a temporary session ends at once");
static_assert(std::is_constructible_v<Mutex, Session&, std::string>);
static_assert(!std::is_convertible_v<std::chrono::milliseconds, std::chrono::seconds>);
static_assert(std::is_copy_constructible_v<Client>);
static_assert(!std::is_copy_constructible_v<Session> && !std::is_copy_constructible_v<Lock> &&
              !std::is_copy_constructible_v<Watch>);

}  // namespace
}  // namespace conclave
