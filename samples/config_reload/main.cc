// A program whose settings change while it runs: typed, validated as a whole, never half of a change.
//
//   config_reload [CACHE_FILE]      endpoints from CONCLAVE_ENDPOINTS, else http://127.0.0.1:2379
//
// Reads config/orders/{workers,timeout,banks,currency}. With CACHE_FILE it starts from the last good set when no server
// answers.
#include <conclave/conclave.h>

#include <chrono>
#include <iostream>
#include <string>
#include <vector>

using namespace std::chrono_literals;

namespace {

struct OrderConfig {
  int workers = 4;
  std::chrono::milliseconds timeout = 500ms;
  std::vector<std::string> banks;
  std::string currency = "EUR";
};

void print(const char* what, const conclave::ConfigSnapshot<OrderConfig>& now) {
  std::cout << what << ": " << now.value.workers << " workers, timeout " << now.value.timeout.count() << " ms, "
            << now.value.banks.size() << " banks, " << now.value.currency << " (revision " << number(now.revision)
            << (now.source == conclave::ViewSource::kDisk ? ", from disk)" : ")") << std::endl;
}

}  // namespace

int main(int argc, char** argv) try {
  conclave::ShutdownSignal shutdown;  // first: SIGINT and SIGTERM become a stop token
  if (argc > 2 || (argc > 1 && argv[1][0] == '-')) {
    std::cerr << "usage: config_reload [CACHE_FILE]\n";
    return 2;
  }
  auto client = conclave::Client::open(conclave::ClientOptions::from_environment().or_throw()).or_throw();

  conclave::Fields<OrderConfig> fields;
  fields.required("workers", &OrderConfig::workers, conclave::between(1, 64))
      .optional("timeout", &OrderConfig::timeout, conclave::between(10ms, 10000ms))  // "500ms", "2s"
      .required("banks", &OrderConfig::banks)
      .optional("currency", &OrderConfig::currency);

  conclave::ConfigOptions<OrderConfig> options;
  options.prefix = "config/orders/";
  options.bind = fields;
  options.validate = [](const OrderConfig& config) -> conclave::Status {
    if (config.banks.empty()) return conclave::fail(conclave::Code::kInvalidArgument, "banks: at least one");
    return {};
  };
  options.cache_file = argc > 1 ? argv[1] : "";
  options.on_change = [](const auto&, const auto& now) { print("changed", *now); };
  options.on_rejected = [](conclave::Revision revision, const conclave::Error& why) {
    std::cout << "kept the old values, revision " << number(revision) << " is no good: " << why.message << std::endl;
  };
  options.call = {.timeout = 10s};
  auto config = conclave::ConfigReloader<OrderConfig>::open(client, std::move(options)).or_throw();

  print("started", *config.snapshot());
  shutdown.wait();
} catch (const conclave::Exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
