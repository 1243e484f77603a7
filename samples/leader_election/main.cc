// Due jobs are run by one scheduler at a time, whichever of several leads. A leader that stops hands over at once; one
// that dies is followed when its TTL is over.
//
//   leader_election SCHEDULER [JOBS]      endpoints from CONCLAVE_ENDPOINTS, else http://127.0.0.1:2379
//
// JOBS: how many a leader runs before it lets another one lead (default: until stopped).
#include <conclave/conclave.h>

#include <chrono>
#include <condition_variable>
#include <iostream>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

using namespace std::chrono_literals;

namespace {

conclave::Status run_due_jobs(const conclave::Client& client, const conclave::Leadership& mine,
                              const std::string& scheduler) {
  auto last = client.get("jobs/run");
  if (!last) return conclave::fail(last.error());
  const long job = *last ? std::stol((*last)->value) + 1 : 1;
  // Only while this very term lasts: a leader that was paused for too long changes nothing. Elsewhere, in a database
  // say, compare the token.
  conclave::Txn done;
  done.then(conclave::op::put("jobs/run", std::to_string(job)));
  if (auto committed = mine.commit(done); !committed) return conclave::fail(committed.error());
  std::cout << scheduler << ": job " << job << ", fencing token " << number(mine.token()) << std::endl;
  return {};
}

void lead(const conclave::Client& client, const conclave::Leadership& mine, const std::string& scheduler, long jobs,
          const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock{mutex};
  for (long i = 0; i < jobs && !stop.stop_requested(); ++i) {
    if (auto ran = run_due_jobs(client, mine, scheduler); !ran)
      std::cerr << scheduler << ": " << to_string(ran.error()) << std::endl;
    wake.wait_for(lock, stop, 300ms, [] { return false; });
  }
}

}  // namespace

int main(int argc, char** argv) try {
  conclave::ShutdownSignal shutdown;  // first: SIGINT and SIGTERM become a stop token
  const std::string scheduler = argc > 1 ? argv[1] : "scheduler";
  const long jobs = argc > 2 ? std::stol(argv[2]) : std::numeric_limits<long>::max();

  auto client = conclave::Client::open(conclave::ClientOptions::from_environment().or_throw()).or_throw();
  conclave::LeaderViewOptions seen{.election = "elections/scheduler"};
  seen.on_change = [&](const std::optional<conclave::Leader>& now) {
    std::cout << scheduler << " sees: leader " << (now ? now->value : "nobody") << std::endl;
  };
  conclave::CandidateOptions standing{.election = seen.election, .value = scheduler, .ttl = 3s};
  standing.lead = [&](conclave::Leadership& mine, std::stop_token stop) { lead(client, mine, scheduler, jobs, stop); };
  standing.on_state = [&](conclave::CandidateState, const std::string& why) {
    std::cerr << scheduler << ": " << why << std::endl;
  };
  // Both fail only for bad arguments; the cluster may still be down.
  auto view = conclave::LeaderView::open(client, std::move(seen)).or_throw();
  auto candidate = conclave::Candidate::open(client, std::move(standing)).or_throw();

  shutdown.wait();
  if (auto closed = candidate.close({.timeout = 5s}); !closed)
    std::cerr << "the lease will end it: " << to_string(closed.error()) << '\n';
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
