// Lease: grant and revoke go through the log; keepalives and remaining time are the leader's own knowledge.
#include <deque>

#include "base/thread.h"
#include "rpc/context.h"

namespace rpc {
namespace {

using etcdserverpb::LeaseGrantRequest;
using etcdserverpb::LeaseGrantResponse;
using etcdserverpb::LeaseKeepAliveRequest;
using etcdserverpb::LeaseKeepAliveResponse;
using etcdserverpb::LeaseLeasesRequest;
using etcdserverpb::LeaseLeasesResponse;
using etcdserverpb::LeaseRevokeRequest;
using etcdserverpb::LeaseRevokeResponse;
using etcdserverpb::LeaseTimeToLiveRequest;
using etcdserverpb::LeaseTimeToLiveResponse;

constexpr size_t kKeepAlivesInFlightMax = 1'000;  // of one stream; more stay in its socket

void grant(Context& context, http::UnaryCall call) {
  const auto request = call.take<LeaseGrantRequest>();
  if (request->ttl() > lease::kTtlMaxSeconds) {
    return call.reply.fail(Code::kOutOfRange, lease::kErrorTtlTooLarge);
  }
  context.counters.leases_granted.add();
  conclavepb::Entry command;
  auto& lease = *command.mutable_lease_grant();
  lease.set_id(request->id() != 0 ? request->id() : context.member.new_lease_id());
  lease.set_ttl(std::max(request->ttl(), context.member.options().lease_ttl_min_seconds()));
  propose<LeaseGrantResponse>(context, std::move(command), std::move(call.reply));
}

void revoke(Context& context, http::UnaryCall call) {
  context.counters.leases_revoked.add();
  conclavepb::Entry command;
  command.mutable_lease_revoke()->set_id(call.take<LeaseRevokeRequest>()->id());
  propose<LeaseRevokeResponse>(context, std::move(command), std::move(call.reply));
}

void time_to_live(Context& context, http::UnaryCall call) {
  const auto request = call.take<LeaseTimeToLiveRequest>();
  const auto reply = std::make_shared<http::Reply>(std::move(call.reply));
  const int64_t id = request->id();
  context.member.remaining(id, [&context, reply, id, keys = request->keys()](Result<std::optional<member::Time>> time) {
    if (!time) return reply->send(::fail(std::move(time.error())));
    auto response = std::make_unique<LeaseTimeToLiveResponse>();
    context.header.fill(response->mutable_header());
    response->mutable_header()->set_revision(context.member.state().published.revision);
    response->set_id(id);
    const auto lease = context.member.leases().find(id);
    if (!*time || !lease) {
      response->set_ttl(-1);
    } else {
      response->set_ttl(std::chrono::duration_cast<std::chrono::seconds>(**time).count());
      response->set_grantedttl(lease->ttl);
      if (keys) {
        for (auto& key : context.member.leases().keys(id)) response->add_keys(std::move(key));
      }
    }
    reply->send(std::unique_ptr<const google::protobuf::Message>(std::move(response)));
  });
}

void leases(Context& context, http::UnaryCall call) {
  with_reader(context, call.info.io_thread, false, std::move(call.reply),
              [&context](mvcc::Reader& reader, http::Reply reply) {
                LeaseLeasesResponse response;
                context.header.fill(response.mutable_header());
                response.mutable_header()->set_revision(reader.at().revision);
                for (const lease::Info& lease : context.member.leases().list()) response.add_leases()->set_id(lease.id);
                reply.send_now(response);
              });
}

// Answers in the order of the requests, whatever order they are decided in.
class KeepAliveQueue {
 public:
  explicit KeepAliveQueue(std::shared_ptr<http::ServerStream> stream) : stream_(std::move(stream)) {}

  uint64_t expect() {
    MutexLock lock(mutex_);
    answers_.emplace_back();
    return first_ + answers_.size() - 1;
  }
  void answer(uint64_t place, Result<LeaseKeepAliveResponse> response) {
    {
      MutexLock lock(mutex_);
      if (place < first_) return;
      answers_[place - first_] = std::move(response);
    }
    stream_->wake();
  }
  // The next answer whose turn it is.
  std::optional<Result<LeaseKeepAliveResponse>> take() {
    MutexLock lock(mutex_);
    if (answers_.empty() || !answers_.front()) return std::nullopt;
    auto answer = std::move(answers_.front());
    answers_.pop_front();
    ++first_;
    return answer;
  }
  size_t size() const {
    MutexLock lock(mutex_);
    return answers_.size();
  }

 private:
  const std::shared_ptr<http::ServerStream> stream_;
  mutable Mutex mutex_;
  std::deque<std::optional<Result<LeaseKeepAliveResponse>>> answers_ GUARDED_BY(mutex_);
  uint64_t first_ GUARDED_BY(mutex_) = 0;
};

class KeepAlive final : public http::StreamHandler {
 public:
  KeepAlive(Context& context, std::shared_ptr<http::ServerStream> stream)
      : context_(context), stream_(stream), queue_(std::make_shared<KeepAliveQueue>(std::move(stream))) {}

  bool may_receive() override { return queue_->size() < kKeepAlivesInFlightMax; }
  void on_message(http::MessagePtr request) override {
    const int64_t id = static_cast<const LeaseKeepAliveRequest&>(*request).id();
    const uint64_t place = queue_->expect();
    context_.counters.leases_renewed.add();
    context_.member.keep_alive(id, [&context = context_, queue = queue_, id, place](Result<int64_t> ttl) {
      if (!ttl) return queue->answer(place, ::fail(std::move(ttl.error())));
      LeaseKeepAliveResponse response;
      context.header.fill(response.mutable_header());
      response.mutable_header()->set_revision(context.member.state().published.revision);
      response.set_id(id);
      response.set_ttl(*ttl);
      queue->answer(place, std::move(response));
    });
  }
  void on_half_close() override { half_closed_ = true; }
  void pull(http::Sink& sink) override {
    while (!sink.full()) {
      const auto answer = queue_->take();
      if (!answer) break;
      if (!*answer) return stream_->finish(::fail(answer->error()));
      sink.send(**answer);
    }
    if (half_closed_ && queue_->size() == 0) stream_->finish({});
  }

 private:
  Context& context_;
  const std::shared_ptr<http::ServerStream> stream_;
  const std::shared_ptr<KeepAliveQueue> queue_;
  bool half_closed_ = false;
};

}  // namespace

void add_lease(http::Router& router, Context& context) {
  const auto add = [&](const char* name, std::vector<std::string> paths, const google::protobuf::Message& request,
                       void (*handle)(Context&, http::UnaryCall)) {
    router.unary({.name = std::string("/etcdserverpb.Lease/") + name,
                  .paths = std::move(paths),
                  .request = &request,
                  .handler = [&context, handle](http::UnaryCall call) { handle(context, std::move(call)); }});
  };
  add("LeaseGrant", {"/v3/lease/grant"}, LeaseGrantRequest::default_instance(), grant);
  add("LeaseRevoke", {"/v3/lease/revoke", "/v3/kv/lease/revoke"}, LeaseRevokeRequest::default_instance(), revoke);
  add("LeaseTimeToLive", {"/v3/lease/timetolive", "/v3/kv/lease/timetolive"},
      LeaseTimeToLiveRequest::default_instance(), time_to_live);
  add("LeaseLeases", {"/v3/lease/leases", "/v3/kv/lease/leases"}, LeaseLeasesRequest::default_instance(), leases);
  router.stream({.name = "/etcdserverpb.Lease/LeaseKeepAlive",
                 .paths = {"/v3/lease/keepalive"},
                 .request = &LeaseKeepAliveRequest::default_instance(),
                 .open = [&context](http::StreamStart start) -> Result<std::unique_ptr<http::StreamHandler>> {
                   return std::make_unique<KeepAlive>(context, std::move(start.stream));
                 }});
}

}  // namespace rpc
