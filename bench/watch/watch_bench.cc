// What watches cost without sockets: one publish to 500 watchers of one key, the same encoded as JSON once, a publish
// beside 10,000 idle watches, their memory, and a catch-up of several at once.
//
//   watch_bench              prints one line a figure
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "http/handler.h"
#include "watch/fake_mvcc_test.h"
#include "watch/hub.h"

namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

void print(const char* what, std::vector<double> us) {
  std::sort(us.begin(), us.end());
  double sum = 0;
  for (double each : us) sum += each;
  std::printf("%-58s mean %9.2f us   p50 %9.2f us   p99 %9.2f us\n", what, sum / static_cast<double>(us.size()),
              us[us.size() / 2], us[us.size() * 99 / 100]);
}

struct Client {
  std::shared_ptr<watch::Stream> stream;
  Client(watch::Hub& hub, const std::string& key, const std::string& end = "", int64_t from = 0) {
    // As the front end's: it holds a reference to the stream that it wakes.
    auto woken = std::make_shared<int>(0);
    stream = hub.open([woken] { ++*woken; });
    etcdserverpb::WatchCreateRequest request;
    request.set_key(key);
    request.set_range_end(end);
    request.set_start_revision(from);
    stream->create(request);
    drain(nullptr);
  }
  ~Client() {
    if (stream) stream->close();
  }
  Client(Client&&) = default;

  size_t drain(const std::function<void(const watch::Response&)>& each) const {
    size_t events = 0;
    while (auto response = stream->take()) {
      events += static_cast<size_t>(response->message.events_size());
      if (each) each(*response);
    }
    return events;
  }
};

size_t encode_once(const watch::Response& response) {
  MutexLock lock(response.forms_mutex);
  auto& form = response.forms[0];
  if (form == nullptr) form = http::encode(http::Codec::kJson, response.message);
  return static_cast<const http::Encoded*>(form.get())->bytes.size();
}

void fan_out(int watchers, bool idle_prefixes) {
  watch::FakeMvcc mvcc;
  auto hub = watch::Hub::make(mvcc, {});
  std::vector<Client> idle;
  for (int i = 0; i < (idle_prefixes ? 10'000 : 0); i++) {
    std::string prefix = "idle/" + std::to_string(i) + "/";
    idle.emplace_back(*hub, prefix, prefix.substr(0, prefix.size() - 1) + "0");
  }
  std::vector<Client> clients;
  for (int i = 0; i < watchers; i++) clients.emplace_back(*hub, "hot");
  std::vector<double> publish;
  std::vector<double> take;
  size_t events = 0;
  size_t bytes = 0;
  for (int i = 0; i < 2000; i++) {
    auto batch = mvcc.write({{watchers > 0 ? "hot" : "cold", std::string(100, 'v')}});
    int64_t revision = batch.revision;
    std::vector<mvcc::EventBatch> batches;
    batches.push_back(std::move(batch));
    auto start = Clock::now();
    hub->publish(std::move(batches), revision);
    publish.push_back(us_since(start));
    start = Clock::now();
    for (auto& client : clients) {
      events += client.drain([&](const watch::Response& response) { bytes += encode_once(response); });
    }
    take.push_back(us_since(start));
  }
  std::string where =
      std::to_string(watchers) + " watchers of the key" + (idle_prefixes ? ", 10,000 idle prefixes" : "");
  print(("publish, " + where).c_str(), publish);
  if (watchers == 0) return;
  print(("  all take it, encoded once, " + where).c_str(), take);
  if (events != 2000U * static_cast<size_t>(watchers) || bytes == 0) std::printf("  LOST EVENTS\n");
}

size_t heap_bytes() { return mallinfo2().uordblks; }

void idle_memory(bool ranges) {
  watch::FakeMvcc mvcc;
  auto hub = watch::Hub::make(mvcc, {});
  std::vector<Client> clients;
  clients.reserve(10'000);
  malloc_trim(0);
  size_t before = heap_bytes();
  auto start = Clock::now();
  for (int i = 0; i < 10'000; i++) {
    std::string key = "config/service/instance-" + std::to_string(i) + "/";
    clients.emplace_back(*hub, key, ranges ? key.substr(0, key.size() - 1) + "0" : "");
  }
  double us = us_since(start);
  std::printf("%-58s %zu bytes each, %.2f us to create each\n",
              ranges ? "10,000 streams with a prefix watch" : "10,000 streams with a single-key watch",
              (heap_bytes() - before) / 10'000, us / 10'000);
}

void catch_up(int watchers, size_t ring_bytes) {
  constexpr int kRevisions = 100'000;
  watch::FakeMvcc mvcc;
  auto hub = watch::Hub::make(mvcc, {.watcher_buffer_bytes = 64 << 20,
                                     .stream_buffer_bytes = 64 << 20,
                                     .process_buffer_bytes = 4ULL << 30,
                                     .ring_bytes = ring_bytes,
                                     .ring_revisions = kRevisions});
  for (int i = 0; i < kRevisions; i++) {
    auto batch = mvcc.write({{"key/" + std::to_string(i % 100), std::string(100, 'v')}});
    int64_t revision = batch.revision;
    hub->publish({std::move(batch)}, revision);
  }
  std::vector<Client> clients;
  for (int i = 0; i < watchers; i++) clients.emplace_back(*hub, "key/", "key0", 2);
  std::vector<double> steps;
  auto start = Clock::now();
  for (bool more = true; more;) {
    auto step = Clock::now();
    more = hub->step();
    steps.push_back(us_since(step));
  }
  double us = us_since(start);
  size_t events = 0;
  for (auto& client : clients) events += client.drain(nullptr);
  std::string what = "catch-up step, " + std::to_string(watchers) + " watchers, " +
                     (ring_bytes > 0 ? "from the ring" : "from history");
  print(what.c_str(), steps);
  std::printf("  %zu events handed out in %.1f ms\n", events, us / 1000);
}

}  // namespace

int main() {
  fan_out(500, false);
  fan_out(500, true);
  fan_out(0, true);
  idle_memory(false);
  idle_memory(true);
  catch_up(1, 0);
  catch_up(100, 0);
  catch_up(100, 1 << 30);
}
