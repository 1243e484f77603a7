#include "conclave/fields.h"

#include <gtest/gtest.h>

namespace conclave {
namespace {

using namespace std::chrono_literals;

struct Settings {
  int workers = 4;
  std::chrono::milliseconds timeout = 500ms;
  std::vector<std::string> banks;
  std::string currency = "EUR";
  double share = 0.5;
  bool strict = false;
  std::optional<std::uint16_t> port;
};

Fields<Settings> fields() {
  Fields<Settings> fields;
  fields.required("workers", &Settings::workers, between(1, 64))
      .optional("timeout", &Settings::timeout, between(10ms, 10000ms))
      .required("banks", &Settings::banks)
      .optional("currency", &Settings::currency)
      .optional("share", &Settings::share)
      .optional("strict", &Settings::strict)
      .optional("port", &Settings::port);
  return fields;
}

Result<Settings> bind(std::map<std::string, std::string, std::less<>> values) {
  return fields()(ConfigSet(std::move(values), Revision{7}));
}

TEST(Fields, ReadEveryKindOfValue) {
  const auto read = bind({{"workers", "8"},
                          {"timeout", "1.5s"},
                          {"banks", "a, b ,c"},
                          {"currency", "CHF"},
                          {"share", "0.25"},
                          {"strict", "true"},
                          {"port", "8080"},
                          {"unknown", "x"}});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->workers, 8);
  EXPECT_EQ(read->timeout, 1500ms);
  EXPECT_EQ(read->banks, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(read->currency, "CHF");
  EXPECT_EQ(read->share, 0.25);
  EXPECT_TRUE(read->strict);
  EXPECT_EQ(read->port, 8080);
}

TEST(Fields, LeaveDefaultsAlone) {
  const auto read = bind({{"workers", "8"}, {"banks", ""}});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->timeout, 500ms);
  EXPECT_TRUE(read->banks.empty());
  EXPECT_FALSE(read->port);
}

TEST(Fields, NameWhatIsWrong) {
  const std::pair<std::map<std::string, std::string, std::less<>>, const char*> cases[] = {
      {{{"banks", "a"}}, "workers: missing"},
      {{{"banks", "a"}, {"workers", "many"}}, "workers: \"many\" is not a whole number"},
      {{{"banks", "a"}, {"workers", "65"}}, "workers: outside of its limits, 1 to 64"},
      {{{"banks", "a"}, {"workers", "99999999999"}}, "workers: out of range"},
      {{{"banks", "a"}, {"workers", "8"}, {"timeout", "500"}}, "timeout: \"500\" is not a duration with a unit"},
      {{{"banks", "a"}, {"workers", "8"}, {"timeout", "1us"}}, "timeout: finer than the unit"},
      {{{"banks", "a"}, {"workers", "8"}, {"timeout", "1x"}}, "timeout: \"1x\" is not a duration"},
      {{{"banks", "a"}, {"workers", "8"}, {"strict", "maybe"}}, "strict: \"maybe\" is neither true nor false"},
      {{{"banks", "a"}, {"workers", "8"}, {"share", "nan"}}, "share: \"nan\" is not a finite number"},
      {{{"banks", "a"}, {"workers", "8"}, {"port", "-1"}}, "port: \"-1\" is not a whole number of zero or more"},
      {{{"banks", "a"}, {"workers", "8"}, {"port", "70000"}}, "port: out of range"},
  };
  for (const auto& [values, text] : cases) {
    const auto read = bind(values);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Code::kInvalidArgument);
    EXPECT_EQ(read.error().message.substr(0, std::string(text).size()), text);
  }
}

enum class Level : std::uint8_t { kLow, kHigh };
struct Special {
  Level level = Level::kLow;
  std::chrono::milliseconds pause = 1s;
  std::optional<int> limit;
  std::pair<int, int> range;
};

TEST(Fields, TakeATableAParserOrLimitsOfTwoUnits) {
  Fields<Special> fields;
  fields.optional("level", &Special::level, one_of<Level>({{"low", Level::kLow}, {"high", Level::kHigh}}))
      .optional("pause", &Special::pause, between(10ms, 10s))
      .optional("limit", &Special::limit, between(1u, 9u))
      .optional("range", &Special::range, [](std::string_view text) -> Result<std::pair<int, int>> {
        if (text != "1-2") return fail(Code::kInvalidArgument, "not 1-2");
        return std::pair{1, 2};
      });
  const auto bind = [&](std::map<std::string, std::string, std::less<>> values) {
    return fields(ConfigSet(std::move(values), Revision{7}));
  };
  const auto read = bind({{"level", "high"}, {"pause", "10s"}, {"limit", "9"}, {"range", "1-2"}});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->level, Level::kHigh);
  EXPECT_EQ(read->pause, 10s);
  EXPECT_EQ(read->limit, 9);
  EXPECT_EQ(read->range, (std::pair{1, 2}));
  EXPECT_EQ(bind({{"level", "middle"}}).error().message, "level: not one of high, low");
  EXPECT_EQ(bind({{"pause", "5ms"}}).error().message, "pause: outside of its limits, 10ms to 10s");
  EXPECT_EQ(bind({{"limit", "-1"}}).error().message, "limit: outside of its limits, 1 to 9");
  EXPECT_EQ(bind({{"range", "2-1"}}).error().message, "range: not 1-2");
}

TEST(Fields, ReadDurationsOfSeveralParts) {
  EXPECT_EQ(*internal::parse_duration("1m30s"), 90s);
  EXPECT_EQ(*internal::parse_duration("2h"), 2h);
  EXPECT_EQ(*internal::parse_duration("250us"), 250us);
  EXPECT_FALSE(internal::parse_duration(""));
  EXPECT_FALSE(internal::parse_duration("s"));
  EXPECT_FALSE(internal::parse_duration("1.2.3s"));
  EXPECT_FALSE(internal::parse_duration("9999999999999h"));
}

}  // namespace
}  // namespace conclave
