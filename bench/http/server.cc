// The front end alone: every call is parsed, handed to a handler and answered in JSON, but nothing is stored.
//   /v3/kv/put        a constant PutResponse
//   /v3/kv/range      one pair; with "limit" so many pairs of 256 bytes
//   /v3/kv/txn        as put, but answered by another thread, in batches as a replicated log would
//   /v3/lease/grant   an empty message
// Usage: http_bench_server URL [IO_THREADS]; it runs until it is killed. See run.sh.
#include "http/server.h"

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "api/rpc.pb.h"
#include "base/thread.h"

using namespace etcdserverpb;

namespace {

constexpr int kManyMax = 10'000;

void fill_header(ResponseHeader& header) {
  header.set_cluster_id(324952591200643719);
  header.set_member_id(3319814642761637952);
  header.set_revision(123456);
  header.set_raft_term(2);
}

RangeResponse range_response(int pairs, size_t value_bytes) {
  RangeResponse response;
  fill_header(*response.mutable_header());
  for (int i = 0; i < pairs; ++i) {
    auto* kv = response.add_kvs();
    kv->set_key("bench/key/" + std::to_string(i));
    kv->set_create_revision(100 + i);
    kv->set_mod_revision(200'000 + i);
    kv->set_version(3);
    kv->set_value(std::string(value_bytes, 'v'));
  }
  response.set_count(pairs);
  return response;
}

// Answers from a thread of its own, all that wait at once.
class Applier {
 public:
  Applier() : thread_([this] { run(); }) {}
  ~Applier() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  void add(http::UnaryCall call) {
    MutexLock lock(mutex_);
    waiting_.push_back(std::move(call));
    if (waiting_.size() == 1) changed_.notify_one();
  }

 private:
  void run() {
    for (;;) {
      std::vector<http::UnaryCall> batch;
      {
        MutexLock lock(mutex_);
        while (waiting_.empty() && !stopping_) changed_.wait(mutex_);
        if (stopping_) return;
        batch.swap(waiting_);
      }
      for (http::UnaryCall& call : batch) {
        auto response = std::make_unique<TxnResponse>();
        fill_header(*response->mutable_header());
        call.reply.send(std::move(response));
      }
    }
  }

  Mutex mutex_;
  Condition changed_;
  std::vector<http::UnaryCall> waiting_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: %s URL [IO_THREADS]\n", arguments[0]);
    return 2;
  }
  const RangeResponse one = range_response(1, 256);
  const RangeResponse many = range_response(kManyMax, 256);
  Applier applier;
  http::Router router;
  router.unary({"/etcdserverpb.KV/Put", {"/v3/kv/put"}, &PutRequest::default_instance(), [](http::UnaryCall call) {
                  auto response = std::make_unique<PutResponse>();
                  fill_header(*response->mutable_header());
                  call.reply.send(std::move(response));
                }});
  router.unary(
      {"/etcdserverpb.KV/Range", {"/v3/kv/range"}, &RangeRequest::default_instance(), [&](http::UnaryCall call) {
         const auto request = call.take<RangeRequest>();
         call.reply.send_now(request->limit() > 0 ? many : one);
       }});
  router.unary({"/etcdserverpb.KV/Txn", {"/v3/kv/txn"}, &TxnRequest::default_instance(), [&](http::UnaryCall call) {
                  applier.add(std::move(call));
                }});
  router.unary({"/etcdserverpb.Lease/LeaseGrant",
                {"/v3/lease/grant"},
                &LeaseGrantRequest::default_instance(),
                [](http::UnaryCall call) { call.reply.send_now(LeaseGrantResponse::default_instance()); }});

  http::Server server(router, {.io_threads = count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 1});
  if (const Status status = server.listen({arguments[1]}); !status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    return 1;
  }
  server.start();
  std::printf("%s\n", server.urls()[0].c_str());
  std::fflush(stdout);
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}
