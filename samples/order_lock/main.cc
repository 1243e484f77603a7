// Orders are processed by one worker at a time, whoever of several it is. The lock goes round fairly; a worker that
// dies loses it when its session's TTL is over.
//
//   order_lock WORKER [ORDERS]      endpoints from CONCLAVE_ENDPOINTS, else http://127.0.0.1:2379
//
// ORDERS: how many to process (default: until stopped).
#include <conclave/conclave.h>

#include <chrono>
#include <condition_variable>
#include <iostream>
#include <limits>
#include <mutex>
#include <string>

using namespace std::chrono_literals;

namespace {

// Waits, unless it is told to stop: false then.
bool work_for(std::chrono::milliseconds time, std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock{mutex};
  return !wake.wait_for(lock, stop, time, [&] { return stop.stop_requested(); });
}

conclave::Status process_one(const conclave::Client& client, const conclave::Mutex& mutex, const std::string& worker,
                             std::stop_token stop) {
  auto lock = mutex.lock({.stop = stop});  // waits its turn; ends early if stopped or if the session is lost
  if (!lock) return conclave::fail(lock.error());

  auto last = client.get("orders/processed");
  if (!last) return conclave::fail(last.error());
  const long order = *last ? std::stol((*last)->value) + 1 : 1;
  std::cout << worker << ": order " << order << ", fencing token " << number(lock->token()) << std::endl;

  conclave::AnyStop either{stop, lock->lost()};
  if (!work_for(300ms, either.token())) {
    return conclave::fail(conclave::Code::kAborted, "stopped or lock lost: nothing was committed");
  }
  // Only while this very hold lasts: a worker that was paused for too long changes nothing.
  conclave::Txn done;
  done.then(conclave::op::put("orders/processed", std::to_string(order)));
  if (auto committed = lock->commit(done); !committed) return conclave::fail(committed.error());
  return lock->unlock();
}

}  // namespace

int main(int argc, char** argv) try {
  conclave::ShutdownSignal shutdown;  // first: SIGINT and SIGTERM become a stop token
  const std::string worker = argc > 1 ? argv[1] : "worker";
  if (worker.starts_with("-") || argc > 3) {
    std::cerr << "usage: order_lock WORKER [ORDERS]\n";
    return 2;
  }
  const long orders = argc > 2 ? std::stol(argv[2]) : std::numeric_limits<long>::max();

  auto client = conclave::Client::open(conclave::ClientOptions::from_environment().or_throw()).or_throw();
  auto session = conclave::Session::open(client, {.ttl = 3s}).or_throw();
  conclave::Mutex mutex{session, "locks/order-queue"};
  for (long i = 0; i < orders && !shutdown.token().stop_requested(); ++i) {
    if (auto done = process_one(client, mutex, worker, shutdown.token()); !done) {
      if (shutdown.token().stop_requested()) break;
      std::cerr << worker << ": " << to_string(done.error()) << std::endl;
      if (!session.held()) return 1;   // a new session would be a new worker: let the supervisor start one
      work_for(1s, shutdown.token());  // whatever is wrong is not better at once
    }
  }
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
