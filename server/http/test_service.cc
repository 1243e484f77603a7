#include "http/test_service.h"

#include <algorithm>
#include <array>
#include <deque>

namespace http::test {

using namespace etcdserverpb;

// Shared between the publishing thread and the io thread of one watch.
struct WatchQueue {
  std::mutex mutex;
  std::deque<std::shared_ptr<const Encoded>> waiting;
  std::shared_ptr<ServerStream> stream;
};

class Service::Watch final : public StreamHandler {
 public:
  Watch(Service& service, std::shared_ptr<WatchQueue> queue) : service_(service), queue_(std::move(queue)) {}

  void on_message(MessagePtr request) override {
    const auto& watch = static_cast<const WatchRequest&>(*request);
    service_.journal.note("create " + watch.create_request().key());
    WatchResponse created;
    created.set_created(true);
    created.set_watch_id(next_id_++);
    std::lock_guard lock(queue_->mutex);
    queue_->waiting.push_back(encode(queue_->stream->codec(), created));
  }
  void on_half_close() override { service_.journal.note("half-close"); }
  void on_cancel() override { service_.journal.note("cancel"); }
  void pull(Sink& sink) override {
    std::lock_guard lock(queue_->mutex);
    while (!sink.full() && !queue_->waiting.empty()) {
      sink.send(queue_->waiting.front());
      queue_->waiting.pop_front();
    }
  }

 private:
  Service& service_;
  const std::shared_ptr<WatchQueue> queue_;
  int64_t next_id_ = 0;
};

class Service::KeepAlive final : public StreamHandler {
 public:
  explicit KeepAlive(std::shared_ptr<ServerStream> stream) : stream_(std::move(stream)) {}
  bool may_receive() override { return waiting_.size() < 4; }
  void on_message(MessagePtr request) override {
    waiting_.push_back(static_cast<const LeaseKeepAliveRequest&>(*request).id());
  }
  void on_half_close() override { stream_->finish({}); }
  void pull(Sink& sink) override {
    while (!sink.full() && !waiting_.empty()) {
      LeaseKeepAliveResponse response;
      response.set_id(waiting_.front());
      sink.send(response);
      waiting_.pop_front();
    }
  }

 private:
  const std::shared_ptr<ServerStream> stream_;
  std::deque<int64_t> waiting_;
};

Service::Service() {
  add_unary();
  add_streams();
  add_plain();
}

Service::~Service() {
  for (std::thread& thread : threads_) thread.join();
}

void Service::add_unary() {
  router.unary({"/etcdserverpb.KV/Put", {"/v3/kv/put"}, &PutRequest::default_instance(), [this](UnaryCall call) {
                  const auto request = call.take<PutRequest>();
                  if (request->key().empty())
                    return call.reply.fail(Code::kInvalidArgument, "etcdserver: key is not provided");
                  PutResponse response;
                  std::lock_guard lock(mutex_);
                  response.mutable_header()->set_revision(++revision_);
                  call.reply.send_now(response);
                }});
  router.unary({"/etcdserverpb.KV/Range",
                {"/v3/kv/range", "/v3/kv/lease/range"},
                &RangeRequest::default_instance(),
                [](UnaryCall call) {
                  const auto request = call.take<RangeRequest>();
                  auto response = std::make_unique<RangeResponse>();
                  for (int64_t i = 0; i < std::max<int64_t>(1, request->limit()); ++i) {
                    response->add_kvs()->set_key(request->key());
                  }
                  if (!call.info.token.empty()) response->mutable_kvs(0)->set_value(call.info.token);
                  call.reply.send(std::move(response));
                }});
  router.unary({"/etcdserverpb.KV/DeleteRange",
                {"/v3/kv/deleterange"},
                &DeleteRangeRequest::default_instance(),
                [this](UnaryCall call) {
                  std::lock_guard lock(mutex_);
                  threads_.emplace_back([call = std::make_shared<UnaryCall>(std::move(call))] {
                    DeleteRangeResponse response;
                    response.set_deleted(static_cast<int64_t>(call->take<DeleteRangeRequest>()->key().size()));
                    call->reply.send_now(response);
                  });
                }});
  router.unary(
      {"/etcdserverpb.KV/Compact", {"/v3/kv/compaction"}, &CompactionRequest::default_instance(), [](UnaryCall) {}});
  router.unary({"/etcdserverpb.KV/Txn", {"/v3/kv/txn"}, &TxnRequest::default_instance(), [this](UnaryCall call) {
                  std::lock_guard lock(mutex_);
                  txns_.push_back(std::move(call));
                  changed_.notify_all();
                }});
}

void Service::add_streams() {
  router.stream({"/etcdserverpb.Watch/Watch",
                 {"/v3/watch"},
                 &WatchRequest::default_instance(),
                 [this](StreamStart start) -> Result<std::unique_ptr<StreamHandler>> {
                   if (start.info.token == "refuse")
                     return fail(Code::kPermissionDenied, "etcdserver: permission denied");
                   auto queue = std::make_shared<WatchQueue>();
                   queue->stream = start.stream;
                   std::lock_guard lock(mutex_);
                   watches_.push_back(queue);
                   return std::make_unique<Watch>(*this, queue);
                 }});
  router.stream({"/etcdserverpb.Lease/LeaseKeepAlive",
                 {"/v3/lease/keepalive"},
                 &LeaseKeepAliveRequest::default_instance(),
                 [](StreamStart start) -> Result<std::unique_ptr<StreamHandler>> {
                   return std::make_unique<KeepAlive>(start.stream);
                 }});
  router.stream({"/etcdserverpb.Maintenance/Snapshot",
                 {"/v3/maintenance/snapshot"},
                 &LeaseKeepAliveRequest::default_instance(),
                 [](StreamStart start) -> Result<std::unique_ptr<StreamHandler>> {
                   return std::make_unique<KeepAlive>(start.stream);
                 },
                 /*single_request=*/true});
}

void Service::add_plain() {
  router.plain({"/health", [](PlainRequest request, PlainReply reply) {
                  reply.send({.body = "{\"health\":\"true\",\"query\":\"" + request.query + "\"}"});
                }});
  router.plain({"/version", [](PlainRequest, PlainReply reply) {
                  reply.send({.content_type = "application/json", .body = "{}", .headers = {{"X-A", "b"}}});
                }});
  router.plain({"/metrics",
                [](PlainRequest request, PlainReply reply) { reply.send({.body = "method " + request.method + "\n"}); },
                /*get_only=*/false});
  router.plain({"/dropped", [](PlainRequest, PlainReply) {}});
}

UnaryCall Service::take_txn() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !txns_.empty(); });
  UnaryCall call = std::move(txns_.front());
  txns_.erase(txns_.begin());
  return call;
}

size_t Service::txns_waiting() {
  std::lock_guard lock(mutex_);
  return txns_.size();
}

void Service::publish(const WatchResponse& response) {
  const std::array<std::shared_ptr<const Encoded>, 2> encoded = {encode(Codec::kJson, response),
                                                                 encode(Codec::kGrpc, response)};
  std::lock_guard lock(mutex_);
  for (const auto& queue : watches_) {
    {
      std::lock_guard queue_lock(queue->mutex);
      queue->waiting.push_back(encoded[static_cast<size_t>(queue->stream->codec())]);
    }
    queue->stream->wake();
  }
}

void Service::finish_watches(Status status) {
  std::lock_guard lock(mutex_);
  for (const auto& queue : watches_) queue->stream->finish(status);
}

}  // namespace http::test
