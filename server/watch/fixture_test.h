// A hub over the fake key space, clients that read it, and responses as short lines:
//
//   "5 #0 created"                       header.revision, watch id, flags
//   "7 #0 a=1@5 -b@7 (was x@3)"          events: put, delete with the value before
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "watch/fake_mvcc_test.h"
#include "watch/hub.h"

namespace watch {

using Lines = std::vector<std::string>;
using Request = etcdserverpb::WatchCreateRequest;

inline std::string line(const etcdserverpb::WatchResponse& response) {
  std::string text = std::to_string(response.header().revision()) + " #" + std::to_string(response.watch_id());
  if (response.created()) text += " created";
  if (response.canceled()) text += " canceled";
  if (response.compact_revision() != 0) text += " compacted=" + std::to_string(response.compact_revision());
  if (!response.cancel_reason().empty()) text += " '" + response.cancel_reason() + "'";
  if (response.fragment()) text += " fragment";
  for (const auto& event : response.events()) {
    const auto& kv = event.kv();
    text += event.type() == mvccpb::Event::DELETE ? " -" + kv.key() : " " + kv.key() + "=" + kv.value();
    text += "@" + std::to_string(kv.mod_revision());
    if (event.has_prev_kv()) {
      text += " (was " + event.prev_kv().value() + "@" + std::to_string(event.prev_kv().mod_revision()) + ")";
    }
  }
  return text;
}

struct Client {
  explicit Client(Hub& hub) : stream(hub.open([this] { wakes++; })) {}
  Client(const Client&) = delete;
  ~Client() { stream->close(); }

  void watch(const std::string& key, const std::string& end = "", const std::function<void(Request&)>& more = {}) {
    Request request;
    request.set_key(key);
    request.set_range_end(end);
    if (more) more(request);
    stream->create(request);
  }
  void watch_from(int64_t revision, const std::string& key, const std::string& end = "") {
    watch(key, end, [&](Request& request) { request.set_start_revision(revision); });
  }
  Lines take() {
    Lines lines;
    while (auto response = stream->take()) lines.push_back(line(response->message));
    return lines;
  }
  std::string take_one() {
    auto response = stream->take();
    return response == nullptr ? "nothing" : line(response->message);
  }

  int wakes = 0;
  std::shared_ptr<Stream> stream;
};

class Fixture : public ::testing::Test {
 protected:
  // Again with other options: before anything is opened.
  void start(const Options& options) {
    hub = Hub::make(mvcc, options);
    hub->set_on_work([this] { works++; });
  }
  void SetUp() override { start({}); }

  int64_t write(const std::vector<Write>& writes) {
    auto batch = mvcc.write(writes);
    int64_t revision = batch.revision;
    hub->publish({std::move(batch)}, revision);
    return revision;
  }
  int64_t put(const std::string& key, const std::string& value) { return write({{key, value}}); }
  int64_t erase(const std::string& key) { return write({{key, std::nullopt}}); }
  void compact(int64_t revision) {
    mvcc.compact(revision);
    hub->compacted(revision);
  }
  // Catch-up until there is nothing to do; returns the number of steps.
  int run() {
    int steps = 1;
    while (hub->step()) {
      EXPECT_LT(++steps, 100'000);
      if (steps >= 100'000) break;
    }
    return steps;
  }

  FakeMvcc mvcc;
  std::unique_ptr<Hub> hub;
  int works = 0;
};

}  // namespace watch
