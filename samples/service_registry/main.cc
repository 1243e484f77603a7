// A service that registers itself, and a program that finds its instances.
//
//   service_registry serve SERVICE ADDRESS PORT    is an instance until it is stopped; SIGTERM: it drains first
//   service_registry watch SERVICE                 tells whenever instances come or go
//
// Endpoints from CONCLAVE_ENDPOINTS, else http://127.0.0.1:2379.
#include <conclave/conclave.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>

using namespace std::chrono_literals;

namespace {

int serve(const conclave::Client& client, const std::string& service, const std::string& address, std::uint16_t port,
          const conclave::ShutdownSignal& shutdown) {
  conclave::Registry registry{client, {.ttl = 3s}};  // a killed instance is gone after this time
  auto self = registry
                  .add({.service = service,
                        .address = address,
                        .port = port,
                        .version = "1.0.0",
                        .metadata = {{"protocol", "http"}},
                        // Asks what this instance needs; three bad answers in a row and nobody is sent here.
                        .health = {.check = [] { return conclave::Health::passing(); }, .every = 1s},
                        .on_state = [](conclave::RegistrationState,
                                       const std::string& why) { std::cout << "registration: " << why << std::endl; }})
                  .or_throw();  // fails only for bad arguments; the cluster may still be down
  if (auto ready = self.wait_ready({.timeout = 5s}); !ready)
    std::cerr << "not registered yet, still trying: " << to_string(ready.error()) << std::endl;

  shutdown.wait();
  if (auto gone = self.drain({.grace = 1s}); !gone)
    std::cerr << "the lease will remove it: " << to_string(gone.error()) << std::endl;
  return 0;
}

void print(const conclave::InstanceList& now) {
  std::cout << now.instances.size() << " instances:";
  for (const conclave::Instance& instance : now.instances)
    std::cout << ' ' << instance.host_port() << (instance.usable() ? "" : " (not to be called)");
  std::cout << std::endl;
}

int watch(const conclave::Client& client, const std::string& service, const conclave::ShutdownSignal& shutdown) {
  conclave::DiscoveryOptions options;
  options.service = service;
  options.on_change = [](const auto& now) { print(*now); };
  auto instances = conclave::Discovery::open(client, std::move(options)).or_throw();
  instances.wait_ready({.timeout = 10s}).or_throw();
  if (auto pick = instances.pick()) std::cout << "the next call goes to " << pick->instance().host_port() << std::endl;
  shutdown.wait();
  return 0;
}

int usage() {
  std::cerr << "usage: service_registry serve SERVICE ADDRESS PORT\n       service_registry watch SERVICE\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) try {
  conclave::ShutdownSignal shutdown;  // first: SIGINT and SIGTERM become a stop token
  const std::string what = argc > 1 ? argv[1] : "";
  auto client = conclave::Client::open(conclave::ClientOptions::from_environment().or_throw()).or_throw();
  if (what == "serve" && argc == 5) {
    const int port = std::stoi(argv[4]);
    if (port < 1 || port > 65535) return usage();
    return serve(client, argv[2], argv[3], static_cast<std::uint16_t>(port), shutdown);
  }
  if (what == "watch" && argc == 3) return watch(client, argv[2], shutdown);
  return usage();
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
