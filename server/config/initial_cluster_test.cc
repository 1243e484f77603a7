#include "config/initial_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "config/parse.h"

namespace {

using config::Options;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<config::Parsed> parse(std::vector<std::string> arguments) {
  std::vector<const char*> argv = {"conclave"};
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  return config::parse(static_cast<int>(argv.size()), argv.data(), nullptr);
}

Options options(std::vector<std::string> arguments) {
  auto parsed = parse(std::move(arguments));
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed ? parsed->options : Options{};
}

std::string refusal(std::vector<std::string> arguments) {
  const auto parsed = parse(std::move(arguments));
  return parsed ? "was accepted" : parsed.error().message;
}

constexpr const char* kThree = "--initial-cluster=c=http://c:1,a=http://a:2,b=http://b:1,a=http://a:1";

TEST(InitialCluster, HasMembersByNameEachWithItsUrls) {
  const Options made = options({"--name=a", "--initial-advertise-peer-urls=http://a:1,http://a:2", kThree});
  ASSERT_EQ(made.initial_cluster.size(), 3u);
  EXPECT_EQ(made.initial_cluster[0].name, "a");
  EXPECT_EQ(join(made.initial_cluster[0].peer_urls), "http://a:1,http://a:2");
  EXPECT_EQ(join(made.initial_cluster), "a=http://a:1,a=http://a:2,b=http://b:1,c=http://c:1");
  EXPECT_FALSE(made.existing);
  EXPECT_EQ(options({"--name=c", kThree}).initial_cluster, made.initial_cluster) << "the same on every member";
  EXPECT_EQ(join(options({"--name=a", "--initial-cluster= a=http://a:1,,b= http://b:1,"}).initial_cluster),
            "a=http://a:1,b=http://b:1")
      << "spaces and empty parts are let pass, as in etcd";
}

TEST(InitialCluster, IsThisMemberUnlessGiven) {
  EXPECT_EQ(join(options({"--name=m", "--initial-advertise-peer-urls=http://b:1,http://a:1"}).initial_cluster),
            "m=http://a:1,m=http://b:1");
  EXPECT_EQ(options({"--name=m"}).data_dir, "m.etcd");
}

TEST(InitialCluster, RefusesWhatNamesNoMembers) {
  const auto refused = [](const std::string& value) { return refusal({"--initial-cluster=" + value}); };
  for (const char* wrong : {"default", "default=", "=http://localhost:2380", "default=localhost:2380",
                            "default=http://localhost", "default=http://localhost:2380/x", "default=http://a:99999"}) {
    EXPECT_THAT(refused(wrong), HasSubstr(std::string("--initial-cluster: illegal value \"") + wrong +
                                          "\"; legal: name=URL, comma separated ("));
  }
  EXPECT_THAT(refused("default=http://a:1/x"), HasSubstr("URL must not contain a path"));
  EXPECT_THAT(refused("default=http://:1"), HasSubstr("unexpected empty host"));
  EXPECT_THAT(refused("other=http://localhost:2380"),
              HasSubstr("couldn't find local name \"default\" in the initial cluster configuration"));
  EXPECT_THAT(refused("default=http://a:1,b=http://a:1"), HasSubstr("has duplicate url http://a:1"));
  EXPECT_THAT(refused("default=http://a:1,default=http://a:1"), HasSubstr("has duplicate url http://a:1"));
  EXPECT_THAT(refusal({"--initial-cluster-state=old"}), HasSubstr("legal: new or existing"));
}

TEST(InitialCluster, MembersTalkPlainHttp) {
  EXPECT_THAT(refusal({"--initial-cluster=default=http://localhost:2380,b=https://b:1"}),
              HasSubstr("--initial-cluster: \"https://b:1\" is not supported yet"));
  EXPECT_THAT(refusal({"--initial-advertise-peer-urls=https://b:1"}),
              HasSubstr("--initial-advertise-peer-urls: \"https://b:1\" is not supported yet"));
  EXPECT_THAT(refusal({"--listen-peer-urls=https://127.0.0.1:1"}), HasSubstr("TLS comes with a later release"));
}

TEST(InitialCluster, WarnsOfCommonMistakes) {
  const auto warnings = [](std::vector<std::string> arguments) {
    auto parsed = parse(std::move(arguments));
    EXPECT_TRUE(parsed) << parsed.error().message;
    return parsed ? parsed->warnings : std::vector<std::string>{};
  };
  EXPECT_THAT(warnings({"--initial-cluster=default=http://localhost:2380,b=http://localhost:1"}),
              ElementsAre(HasSubstr("--name is \"default\"")));
  const std::vector<std::string> remote = {"--name=a", "--initial-advertise-peer-urls=http://a:1",
                                           "--initial-cluster=a=http://a:1,b=http://b:1"};
  EXPECT_THAT(warnings(remote), ElementsAre(HasSubstr("takes connections from this machine only")));
  auto listening = remote;
  listening.push_back("--listen-peer-urls=http://0.0.0.0:1");
  EXPECT_THAT(warnings(listening), IsEmpty());
  EXPECT_THAT(warnings({"--name=a", "--initial-cluster=a=http://localhost:2380,b=http://localhost:1"}), IsEmpty())
      << "all on one machine";
}

class FirstStart : public testing::Test {
 protected:
  Status check(const Options& options) {
    return check_first_start(
        options,
        [this](const std::string& host) {
          asked.push_back(host);
          return hosts[host];
        },
        warnings);
  }
  std::string refused(const Options& options) {
    const Status checked = check(options);
    return checked ? "was accepted" : checked.error().message;
  }

  std::map<std::string, std::vector<std::string>> hosts;
  std::vector<std::string> asked;
  std::vector<std::string> warnings;
};

Options two_urls(const std::string& advertised, const std::string& listed) {
  return options(
      {"--name=m", "--initial-advertise-peer-urls=" + advertised, "--initial-cluster=n=http://n:1," + listed});
}

TEST_F(FirstStart, EqualUrlsAreNotResolved) {
  EXPECT_TRUE(check(two_urls("http://b:1,http://a:1", "m=http://a:1,m=http://b:1")));
  EXPECT_THAT(asked, IsEmpty());
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(FirstStart, DifferentUrlsAreRefused) {
  EXPECT_THAT(refused(two_urls("http://a:1,http://b:1", "m=http://a:1")),
              HasSubstr("--initial-advertise-peer-urls has http://b:1 but missing from "
                        "--initial-cluster=m=http://a:1,n=http://n:1"));
  EXPECT_THAT(refused(two_urls("http://a:1", "m=http://a:1,m=http://b:1")),
              HasSubstr("--initial-cluster has m=http://b:1 but missing from "
                        "--initial-advertise-peer-urls=http://a:1; give this member the same URLs in both"));
  EXPECT_THAT(refused(two_urls("http://a:1", "m=http://a:2")), HasSubstr("--initial-cluster has m=http://a:2"));
  EXPECT_THAT(asked, IsEmpty()) << "another port is another URL, whatever the name is";
  hosts = {{"a", {"10.0.0.1"}}, {"b", {"10.0.0.2", "10.0.0.3"}}};
  EXPECT_THAT(refused(two_urls("http://a:1", "m=http://b:1")), HasSubstr("--initial-cluster has m=http://b:1"));
}

TEST_F(FirstStart, NamesOfOneAddressAreEqual) {
  hosts = {{"a", {"10.0.0.1"}}, {"b", {"10.0.0.2", "10.0.0.1"}}, {"10.0.0.1", {"10.0.0.1"}}};
  EXPECT_TRUE(check(two_urls("http://a:1", "m=http://b:1")));
  EXPECT_TRUE(check(two_urls("http://a:1", "m=http://10.0.0.1:1")));
  EXPECT_TRUE(check(two_urls("http://a:1,http://a:2", "m=http://b:2,m=http://10.0.0.1:1")));
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(FirstStart, ANameThatIsNotKnownYetIsAWarning) {
  hosts = {{"a", {"10.0.0.1"}}};
  EXPECT_TRUE(check(two_urls("http://a:1", "m=http://late:1")));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("not resolved: late; starting nevertheless")));
  EXPECT_FALSE(check(two_urls("http://a:1,http://a:2", "m=http://late:1,m=http://late:3")))
      << "the ports differ anyway";
}

TEST_F(FirstStart, WhoJoinsNamesOthers) {
  const Options joins = options({"--name=m", "--initial-advertise-peer-urls=http://b:1",
                                 "--initial-cluster-state=existing", "--initial-cluster=m=http://a:1,n=http://n:1"});
  EXPECT_TRUE(joins.existing);
  EXPECT_TRUE(check(joins)) << "its URLs are what member add was told";
  EXPECT_THAT(refused(options({"--name=m", "--initial-cluster-state=existing"})), HasSubstr("names no other member"));
}

TEST(AddressesOf, KnowsThisMachine) {
  EXPECT_THAT(config::addresses_of("127.0.0.1"), ElementsAre("127.0.0.1"));
  EXPECT_THAT(config::addresses_of("::1"), ElementsAre("::1"));
}

}  // namespace
