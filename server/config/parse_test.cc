#include "config/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "config/flag.h"
#include "config/version.h"

namespace {

using config::AutoCompaction;
using config::Flag;
using config::Options;
using config::Parsed;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

Result<Parsed> parse(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
  std::vector<const char*> argv = {"conclave"};
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  std::vector<const char*> environ;
  for (const auto& variable : environment) environ.push_back(variable.c_str());
  environ.push_back(nullptr);
  return config::parse(static_cast<int>(argv.size()), argv.data(), environ.data());
}

Options options(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
  auto parsed = parse(std::move(arguments), std::move(environment));
  if (!parsed) {
    ADD_FAILURE() << parsed.error().message;
    return {};
  }
  EXPECT_THAT(parsed->warnings, IsEmpty());
  EXPECT_EQ(parsed->print, std::nullopt);
  return parsed->options;
}

std::string refusal(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
  const auto parsed = parse(std::move(arguments), std::move(environment));
  if (parsed) return "was accepted";
  EXPECT_EQ(parsed.error().code, Code::kInvalidArgument);
  return parsed.error().message;
}

TEST(Parse, DefaultsAreEtcds) {
  const Options made = options({});
  EXPECT_EQ(made.name, "default");
  EXPECT_EQ(made.data_dir, "default.etcd");
  EXPECT_EQ(made.wal_dir, "");
  EXPECT_EQ(join(made.listen_client_urls), "http://localhost:2379");
  EXPECT_EQ(join(made.advertise_client_urls), "http://localhost:2379");
  EXPECT_EQ(join(made.listen_peer_urls), "http://localhost:2380");
  EXPECT_EQ(join(made.initial_advertise_peer_urls), "http://localhost:2380");
  ASSERT_EQ(made.initial_cluster.size(), 1u);
  EXPECT_EQ(made.initial_cluster[0].name, "default");
  EXPECT_EQ(join(made.initial_cluster[0].peer_urls), "http://localhost:2380");
  EXPECT_FALSE(made.existing);
  EXPECT_EQ(made.initial_cluster_token, "etcd-cluster");
  EXPECT_FALSE(made.force_new_cluster);
  EXPECT_TRUE(made.strict_reconfig_check);
  EXPECT_TRUE(made.pre_vote);
  EXPECT_EQ(made.heartbeat_interval, 100ms);
  EXPECT_EQ(made.election_timeout, 1000ms);
  EXPECT_EQ(made.snapshot_count, 10'000u);
  EXPECT_EQ(made.quota_backend_bytes, 2147483648);
  EXPECT_EQ(made.max_request_bytes, 1572864u);
  EXPECT_EQ(made.max_txn_ops, 128u);
  EXPECT_EQ(made.auto_compaction, AutoCompaction{});
  EXPECT_EQ(made.watch_progress_notify_interval, 10min);
  EXPECT_EQ(made.cache_bytes, 64u << 20);
  EXPECT_GE(made.io_threads, 1u);
  EXPECT_EQ(made.log.level, LogLevel::kInfo);
  EXPECT_TRUE(made.log.json);
  EXPECT_EQ(made.log.outputs, "stderr");
}

TEST(Parse, TakesEachFormOfAFlag) {
  EXPECT_EQ(options({"--name", "a"}).name, "a");
  EXPECT_EQ(options({"--name=b"}).name, "b");
  EXPECT_EQ(options({"-name=c"}).name, "c");
  EXPECT_EQ(options({"-name", "d"}).name, "d");
  EXPECT_EQ(options({"--name", "-e"}).name, "-e");
  EXPECT_EQ(options({"--name=f=g"}).name, "f=g");
  EXPECT_EQ(options({"--name=a", "--name", "b"}).name, "b") << "the last one wins";
  EXPECT_EQ(options({"--wal-dir="}).wal_dir, "");
  EXPECT_EQ(options({"--quota-backend-bytes", "-1"}).quota_backend_bytes, -1);
  EXPECT_EQ(options({"--experimental-watch-progress-notify-interval=5s"}).watch_progress_notify_interval, 5s);
}

TEST(Parse, SwitchesTakeNoNextArgument) {
  EXPECT_TRUE(options({"--force-new-cluster"}).force_new_cluster);
  EXPECT_FALSE(options({"--force-new-cluster=0"}).force_new_cluster);
  EXPECT_FALSE(options({"--strict-reconfig-check=false"}).strict_reconfig_check);
  EXPECT_FALSE(options({}, {"ETCD_PRE_VOTE=false"}).pre_vote);
  EXPECT_TRUE(parse({"--pre-vote"}));
  EXPECT_TRUE(parse({"--pre-vote=true"}));
  EXPECT_TRUE(parse({"-pre-vote=F"}));
  EXPECT_THAT(refusal({"--pre-vote", "true"}), HasSubstr("\"true\" is not a valid flag"));
  EXPECT_THAT(refusal({"--pre-vote=yes"}), HasSubstr("--pre-vote: illegal value \"yes\"; legal: true or false"));
}

TEST(Parse, RefusesWhatIsNoFlag) {
  EXPECT_THAT(refusal({"--nonsense"}), HasSubstr("not defined: --nonsense"));
  EXPECT_THAT(refusal({"--experimental-nonsense=1"}), HasSubstr("not defined: --experimental-nonsense"));
  EXPECT_THAT(refusal({"start"}), HasSubstr("\"start\" is not a valid flag"));
  EXPECT_THAT(refusal({"--"}), HasSubstr("\"--\" is not a valid flag"));
  EXPECT_THAT(refusal({""}), HasSubstr("\"\" is not a valid flag"));
  EXPECT_THAT(refusal({"--name"}), HasSubstr("needs an argument: --name"));
}

TEST(Parse, FlagWinsOverOwnVariableWinsOverEtcds) {
  EXPECT_EQ(options({}, {"ETCD_NAME=etcd"}).name, "etcd");
  EXPECT_EQ(options({}, {"CONCLAVE_NAME=ours", "ETCD_NAME=etcd"}).name, "ours");
  EXPECT_EQ(options({"--name=flag"}, {"CONCLAVE_NAME=ours", "ETCD_NAME=etcd"}).name, "flag");
  EXPECT_EQ(options({}, {"CONCLAVE_NAME=", "ETCD_NAME=etcd"}).name, "etcd") << "empty is not set";
  EXPECT_EQ(options({}, {"ETCD_EXPERIMENTAL_WATCH_PROGRESS_NOTIFY_INTERVAL=2s"}).watch_progress_notify_interval, 2s);
  EXPECT_EQ(options({"--heartbeat-interval=50"}, {"ETCD_HEARTBEAT_INTERVAL=nonsense"}).heartbeat_interval, 50ms)
      << "what does not count is not judged";
}

TEST(Parse, UnknownVariablesWarnAndForeignOnesDoNot) {
  const auto parsed = parse({}, {"ETCD_UNKNOWN=1", "ETCD_VERSION=3.6", "ETCDCTL_API=3", "PATH=/bin",
                                 "CONCLAVE_ENDPOINTS=http://a:1", "odd", "CONCLAVE_TYPO=1", "ETCD_name=lower"});
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed->warnings, ElementsAre(HasSubstr("ETCD_UNKNOWN"), HasSubstr("ETCD_VERSION"),
                                            HasSubstr("ETCD_name"), HasSubstr("CONCLAVE_TYPO")));
  EXPECT_TRUE(config::parse(1, std::vector<const char*>{"conclave"}.data(), nullptr)) << "no environment at all";
}

TEST(Parse, AnErrorFromAVariableNamesIt) {
  EXPECT_THAT(refusal({}, {"ETCD_HEARTBEAT_INTERVAL=fast"}),
              HasSubstr("ETCD_HEARTBEAT_INTERVAL: illegal value \"fast\"; legal: whole milliseconds from 1 to 10000"));
}

TEST(Parse, WrongValuesNameFlagValueAndLegalValues) {
  constexpr std::pair<const char*, const char*> kWrong[] = {
      {"name", ""},
      {"data-dir", ""},
      {"listen-client-urls", "localhost:1"},
      {"advertise-client-urls", "http://a:1/x"},
      {"listen-peer-urls", ""},
      {"initial-advertise-peer-urls", "http://a"},
      {"initial-cluster-state", "old"},
      {"heartbeat-interval", "0"},
      {"heartbeat-interval", "1e2"},
      {"election-timeout", "50001"},
      {"election-timeout", "-1"},
      {"snapshot-count", "-1"},
      {"snapshot-count", "many"},
      {"quota-backend-bytes", "2GiB"},
      {"quota-backend-bytes", "9223372036854775808"},
      {"max-request-bytes", "0"},
      {"max-request-bytes", "536870913"},
      {"max-txn-ops", "-1"},
      {"max-txn-ops", "2147483648"},
      {"auto-compaction-mode", "daily"},
      {"watch-progress-notify-interval", "99ms"},
      {"watch-progress-notify-interval", "5"},
      {"log-level", "verbose"},
      {"log-outputs", "default,stdout"},
      {"log-outputs", "stdout,,stderr"},
      {"log-format", "xml"},
      {"feature-gates", "NoSuchGate=true"},
      {"feature-gates", "CompactHashCheck"},
      {"cache-bytes", "1000"},
      {"io-threads", "0"},
      {"io-threads", "65"},
      {"max-wals", "few"},
      {"corrupt-check-time", "5"},
      {"backend-bbolt-freelist-type", "tree"},
  };
  for (const auto& [name, value] : kWrong) {
    const std::string flag = std::string("--") + name;
    const std::string legal = std::string(flag) + ": illegal value \"" + value + "\"; legal: ";
    EXPECT_THAT(refusal({flag + "=" + value}), HasSubstr(legal));
    EXPECT_GT(refusal({flag + "=" + value}).size(), legal.size()) << flag << " names no legal values";
  }
}

TEST(Parse, KeepsEveryValue) {
  const Options made = options({"--name=m1",
                                "--data-dir=/d",
                                "--wal-dir=/w",
                                "--listen-client-urls=http://127.0.0.1:1,http://[::1]:1",
                                "--advertise-client-urls=http://a:1",
                                "--listen-peer-urls=http://0.0.0.0:2",
                                "--initial-advertise-peer-urls=http://a:2",
                                "--initial-cluster=m1=http://a:2",
                                "--initial-cluster-state=new",
                                "--initial-cluster-token=t",
                                "--heartbeat-interval=10",
                                "--election-timeout=50",
                                "--snapshot-count=7",
                                "--quota-backend-bytes=9",
                                "--max-request-bytes=10",
                                "--max-txn-ops=11",
                                "--log-level=fatal",
                                "--log-outputs=stdout,/l",
                                "--log-format=console",
                                "--cache-bytes=1048576",
                                "--io-threads=64"});
  EXPECT_EQ(made.name, "m1");
  EXPECT_EQ(made.data_dir, "/d");
  EXPECT_EQ(made.wal_dir, "/w");
  EXPECT_EQ(join(made.listen_client_urls), "http://127.0.0.1:1,http://[::1]:1");
  EXPECT_EQ(join(made.advertise_client_urls), "http://a:1");
  EXPECT_EQ(join(made.listen_peer_urls), "http://0.0.0.0:2");
  EXPECT_EQ(join(made.initial_advertise_peer_urls), "http://a:2");
  EXPECT_EQ(made.initial_cluster_token, "t");
  EXPECT_EQ(made.heartbeat_interval, 10ms);
  EXPECT_EQ(made.election_timeout, 50ms);
  EXPECT_EQ(made.snapshot_count, 7u);
  EXPECT_EQ(made.quota_backend_bytes, 9);
  EXPECT_EQ(made.max_request_bytes, 10u);
  EXPECT_EQ(made.max_txn_ops, 11u);
  EXPECT_EQ(made.log.level, LogLevel::kFatal);
  EXPECT_EQ(made.log.outputs, "stdout,/l");
  EXPECT_FALSE(made.log.json);
  EXPECT_EQ(made.cache_bytes, 1048576u);
  EXPECT_EQ(made.io_threads, 64u);
  EXPECT_EQ(options({"--quota-backend-bytes=0", "--snapshot-count=0"}).quota_backend_bytes, 2147483648);
  EXPECT_EQ(options({"--snapshot-count=0"}).snapshot_count, 10'000u);
}

TEST(Parse, ElectionTimeoutIsAtLeastFiveHeartbeats) {
  EXPECT_THAT(refusal({"--election-timeout=499"}), HasSubstr("at least as 5 times as --heartbeat-interval[100ms]"));
  EXPECT_EQ(options({"--election-timeout=500"}).election_timeout, 500ms);
  EXPECT_THAT(refusal({"--heartbeat-interval=201"}), HasSubstr("--election-timeout[1000ms]"));
}

TEST(Parse, AutoCompactionIsEtcds) {
  const auto made = [](std::vector<std::string> arguments) { return options(std::move(arguments)).auto_compaction; };
  EXPECT_EQ(made({"--auto-compaction-retention=0"}), AutoCompaction{});
  EXPECT_EQ(made({"--auto-compaction-retention=0s"}), AutoCompaction{});
  EXPECT_EQ(made({"--auto-compaction-retention=5"}),
            (AutoCompaction{.mode = AutoCompaction::Mode::kPeriodic, .period = 5h, .revisions = 0}));
  EXPECT_EQ(made({"--auto-compaction-retention=5m"}),
            (AutoCompaction{.mode = AutoCompaction::Mode::kPeriodic, .period = 5min, .revisions = 0}));
  EXPECT_EQ(made({"--auto-compaction-mode=revision", "--auto-compaction-retention=1000"}),
            (AutoCompaction{.mode = AutoCompaction::Mode::kRevision, .period = 0s, .revisions = 1000}));
  EXPECT_EQ(made({"--auto-compaction-mode=revision"}), AutoCompaction{});
  for (const char* wrong : {"-5", "-5m", "soon", "", "99999999"}) {
    EXPECT_THAT(refusal({std::string("--auto-compaction-retention=") + wrong}),
                HasSubstr(std::string("--auto-compaction-retention: illegal value \"") + wrong));
  }
  for (const char* wrong : {"5m", "-5", ""}) {
    EXPECT_THAT(refusal({"--auto-compaction-mode=revision", std::string("--auto-compaction-retention=") + wrong}),
                HasSubstr("a number of revisions"));
  }
}

TEST(Parse, AdvertiseClientUrlsAreRequiredWithListenClientUrls) {
  EXPECT_THAT(refusal({"--listen-client-urls=http://127.0.0.1:1"}), HasSubstr("--advertise-client-urls is required"));
  EXPECT_THAT(refusal({}, {"ETCD_LISTEN_CLIENT_URLS=http://127.0.0.1:1"}),
              HasSubstr("--advertise-client-urls is required"));
  EXPECT_EQ(join(options({"--advertise-client-urls=http://a:1"}).listen_client_urls), "http://localhost:2379");
}

TEST(Parse, ListensOnAddressesOnly) {
  const auto listen = [](const char* url) {
    return std::vector<std::string>{std::string("--listen-client-urls=") + url, "--advertise-client-urls=http://a:1"};
  };
  for (const char* good : {"http://localhost:0", "http://127.0.0.1:1", "http://0.0.0.0:1", "http://[::1]:1",
                           "http://[::]:1", "unix:///run/c.sock"}) {
    EXPECT_EQ(join(options(listen(good)).listen_client_urls), good);
  }
  for (const char* bad :
       {"http://example.com:1", "http://1.2.3:1", "http://1.2.3.256:1", "http://1.2.3.4.5:1", "http://:1"}) {
    EXPECT_THAT(refusal(listen(bad)), HasSubstr("--listen-client-urls: expected an IP")) << bad;
  }
  EXPECT_THAT(refusal(listen("https://127.0.0.1:1")), HasSubstr("TLS comes with a later release"));
  EXPECT_THAT(refusal({"--listen-peer-urls=http://example.com:1"}), HasSubstr("--listen-peer-urls"));
  EXPECT_THAT(refusal({"--advertise-client-urls=http://:1"}), HasSubstr("unexpected empty host"));
}

TEST(Parse, FlagsWithoutEffectWarnOnceAndByName) {
  for (const Flag& flag : config::flags_of_others()) {
    if (flag.standing != Flag::Standing::kNoEffect) continue;
    const std::string value = flag.kind == Flag::Kind::kSwitch     ? "true"
                              : flag.kind == Flag::Kind::kNumber   ? "7"
                              : flag.kind == Flag::Kind::kDuration ? "7s"
                              : flag.values.empty()                ? "x"
                                                    : std::string(flag.values.substr(0, flag.values.find('|')));
    const std::string source = "--" + std::string(flag.name);
    const auto parsed = parse({source + "=" + value});
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_THAT(parsed->warnings, ElementsAre(testing::StartsWith(source + " has no effect: ")));
  }
}

TEST(Parse, MissingFeaturesAreRefusedByNameUnlessNothingIsAsked) {
  for (const Flag& flag : config::flags_of_others()) {
    if (flag.standing != Flag::Standing::kMissing) continue;
    const std::string source = "--" + std::string(flag.name);
    const std::string harmless(flag.values.substr(0, flag.values.find('|')));
    const auto accepted = parse({source + "=" + harmless});
    ASSERT_TRUE(accepted) << source << ": " << accepted.error().message;
    EXPECT_THAT(accepted->warnings, IsEmpty()) << source;
    const std::string asking = flag.kind == Flag::Kind::kSwitch     ? (harmless == "true" ? "false" : "true")
                               : flag.kind == Flag::Kind::kNumber   ? "7"
                               : flag.kind == Flag::Kind::kDuration ? "7s"
                                                                    : "something";
    EXPECT_THAT(refusal({source + "=" + asking}), HasSubstr(source + ": \"" + asking + "\" is not supported yet: "));
  }
}

TEST(Parse, EqualValuesInOtherSpellingsAskForNothing) {
  EXPECT_TRUE(parse({"--client-cert-auth=F"}));
  EXPECT_TRUE(parse({"--grpc-keepalive-interval=120m"}));
  EXPECT_TRUE(parse({"--auth-token", "simple"}));
  EXPECT_THAT(refusal({"--auth-token=jwt,pub-key=a"}), HasSubstr("users and roles come with a later release"));
  EXPECT_THAT(refusal({"--max-learners=2"}), HasSubstr("--max-learners"));
}

TEST(Parse, FeatureGatesAreKnownByName) {
  const auto parsed = parse({"--feature-gates=LeaseCheckpoint=true,StopGRPCServiceOnDefrag=false"});
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed->warnings, ElementsAre(HasSubstr("LeaseCheckpoint=true has no effect")));
  EXPECT_THAT(refusal({"--feature-gates=StopGRPCServiceOnDefrag=true"}), HasSubstr("not supported yet"));
}

TEST(Parse, LogOutputsAreDefaultOrAList) {
  EXPECT_EQ(options({"--log-outputs=default"}).log.outputs, "stderr");
  EXPECT_EQ(options({"--log-outputs=stdout,stderr"}).log.outputs, "stdout,stderr");
  EXPECT_THAT(refusal({"--log-outputs=systemd/journal"}), HasSubstr("use stderr"));
}

TEST(Parse, VersionBeginsAsEtcds) {
  const auto parsed = parse({"--version", "--name=x"});
  ASSERT_TRUE(parsed);
  ASSERT_TRUE(parsed->print);
  EXPECT_TRUE(parsed->print->starts_with("etcd Version: 3.6.14\n")) << *parsed->print;
  EXPECT_THAT(*parsed->print, HasSubstr("Conclave Version: " CONCLAVE_PROJECT_VERSION "\n"));
  EXPECT_FALSE(parse({"--version=false"})->print);
}

TEST(Parse, HelpNamesEveryFlag) {
  for (const char* form : {"--help", "-h", "-help"}) {
    const auto parsed = parse({form});
    ASSERT_TRUE(parsed);
    ASSERT_TRUE(parsed->print);
    for (const auto* table : {&config::supported_flags(), &config::flags_of_others()}) {
      for (const Flag& flag : *table) EXPECT_THAT(*parsed->print, HasSubstr("--" + std::string(flag.name) + " "));
    }
  }
}

TEST(Flags, AreListedOnce) {
  std::set<std::string_view> names;
  for (const auto* table : {&config::supported_flags(), &config::flags_of_others()}) {
    for (const Flag& flag : *table) {
      EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
      EXPECT_FALSE(flag.text.empty()) << flag.name;
    }
  }
  // Those that tools start a server with (the ones they give most).
  for (const char* known :
       {"strict-reconfig-check", "peer-auto-tls", "cert-file", "initial-corrupt-check", "feature-gates",
        "snapshot-catchup-entries", "max-concurrent-streams", "grpc-keepalive-timeout", "listen-metrics-urls",
        "v2-deprecation", "discovery-endpoints", "host-whitelist", "cors", "max-wals"}) {
    EXPECT_TRUE(names.contains(known)) << known;
  }
}

}  // namespace
