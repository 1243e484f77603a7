// One of several processes that contend for a lock (lock_test.py starts them).
//
//   lock_worker ENDPOINT NAME COUNT TTL          takes the lock COUNT times; a line per hold: "token begin_ns end_ns"
//   lock_worker ENDPOINT NAME hold TTL           takes it, prints "held token ns", and keeps it until it is killed
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

#include "conclave/conclave.h"

namespace {

long long now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);  // the same for all processes of a machine
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 5) {
    std::fprintf(stderr, "usage: lock_worker ENDPOINT NAME COUNT|hold TTL\n");
    return 2;
  }
  auto client = conclave::Client::open({.endpoints = {argv[1]}}).or_throw();
  auto session = conclave::Session::open(client, {.ttl = std::chrono::seconds(std::atoi(argv[4]))}).or_throw();
  conclave::Mutex mutex{session, argv[2]};
  if (std::string(argv[3]) == "hold") {
    auto lock = mutex.lock().or_throw();
    std::printf("held %lld %lld\n", static_cast<long long>(number(lock.token())), now_ns());
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::hours(1));
    return 0;
  }
  for (int i = 0, count = std::atoi(argv[3]); i < count; ++i) {
    auto lock = mutex.lock().or_throw();
    const long long begin = now_ns();
    const auto token = static_cast<long long>(number(lock.token()));
    const long long end = now_ns();
    std::printf("%lld %lld %lld\n", token, begin, end);
    lock.unlock().or_throw();
  }
} catch (const conclave::Exception& error) {
  std::fprintf(stderr, "lock_worker: %s\n", error.what());
  return 1;
}
