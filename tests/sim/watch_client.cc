#include "sim/watch_client.h"

#include <algorithm>

#include "sim/scenario.h"

namespace sim {

WatchClient::WatchClient(Scenario& scenario, const What& what)
    : scenario_(scenario),
      what_(what),
      record_{.name = "of " + what.key, .key = what.key, .end = what.end},
      next_(what.from) {}

void WatchClient::create() {
  etcdserverpb::WatchCreateRequest request;
  request.set_key(what_.key);
  request.set_range_end(what_.end);
  request.set_start_revision(next_);
  request.set_progress_notify(what_.progress_notify);
  if (!owns_stream_) request.set_watch_id(static_cast<int64_t>(host_->guests_.size()));
  stream_->create(request);
  record_.items.push_back(
      {.kind = history::WatchItem::Kind::kStarted, .at = scenario_.cluster.clock.monotonic(), .revision = next_});
}

void WatchClient::connect(size_t node) {
  disconnect();
  node_ = node;
  stream_ = scenario_.member(node).watches().open([] {});
  create();
}

void WatchClient::join(WatchClient& other) {
  disconnect();
  node_ = other.node_;
  stream_ = other.stream_;
  owns_stream_ = false;
  host_ = &other;
  other.guests_.push_back(this);
  create();
}

void WatchClient::disconnect() {
  if (stream_ && owns_stream_) {
    for (WatchClient* guest : guests_) {
      if (guest != nullptr) guest->leave();
    }
    guests_.clear();
    stream_->close();
  } else if (stream_) {
    std::replace(host_->guests_.begin(), host_->guests_.end(), this, static_cast<WatchClient*>(nullptr));
  }
  leave();
}

void WatchClient::leave() {
  stream_.reset();
  owns_stream_ = true;
}

void WatchClient::read(size_t responses_max) {
  if (stream_ && !owns_stream_) return host_->read(responses_max);
  for (size_t i = 0; i < responses_max && stream_; ++i) {
    const watch::ResponsePtr response = stream_->take();
    if (!response) return;
    const auto& message = response->message;
    const auto id = message.watch_id();
    if (id > 0 && static_cast<size_t>(id) <= guests_.size()) {
      if (WatchClient* guest = guests_[static_cast<size_t>(id) - 1]) guest->hear(message);
      continue;
    }
    hear(message);
    // Progress that was asked for is the whole stream's.
    if (id < 0 && !message.canceled()) {
      for (WatchClient* guest : guests_) {
        if (guest != nullptr) guest->hear(message);
      }
    }
  }
}

void WatchClient::hear(const etcdserverpb::WatchResponse& response) {
  const auto item = item_of(response, scenario_.cluster.clock.monotonic());
  if (!item) return;
  switch (item->kind) {
    case history::WatchItem::Kind::kCompacted:
      if (item->revision == 0) {
        cancelled_ = response.cancel_reason();
        return;
      }
      next_ = item->revision;
      break;
    case history::WatchItem::Kind::kProgress:
      progress_ = item->revision;
      next_ = std::max(next_, item->revision + 1);
      break;
    default:
      next_ = item->events.back().kv.mod_revision + 1;
  }
  record_.items.push_back(*item);
  if (item->kind == history::WatchItem::Kind::kCompacted) disconnect();
}

}  // namespace sim
