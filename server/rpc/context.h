// What the services share: the member, the limits, and one reader an io thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "http/handler.h"
#include "member/member.h"
#include "metrics/registry.h"
#include "rpc/header.h"
#include "rpc/large_reads.h"

namespace rpc {

struct Limits {
  size_t request_bytes_max = 1536 * 1024;  // --max-request-bytes
  size_t txn_ops_max = 128;                // --max-txn-ops
};

inline constexpr const char* kErrorTooLarge = "etcdserver: request is too large";

// What the requests share that an io thread handles in one wake-up: one mvcc::Reader, made by the first of them, so
// that it is never older than any of them, and one wake-up of the loop for all that they propose.
class Readers {
 public:
  explicit Readers(size_t io_threads) : slots_(io_threads) {}
  void serve(member::Member& member) { member_ = &member; }  // before the first request
  mvcc::Reader& of(size_t io_thread) {
    auto& slot = slots_[io_thread].reader;
    if (!slot) slot = member_->reader();
    return *slot;
  }
  http::BatchHooks hooks() {
    return {.begin = [this](size_t io_thread) { slots_[io_thread].wakes.begin(); },
            .end =
                [this](size_t io_thread) {
                  slots_[io_thread].wakes.end();
                  slots_[io_thread].reader.reset();
                }};
  }

 private:
  struct alignas(64) Slot {  // each thread its own cache line
    std::unique_ptr<mvcc::Reader> reader;
    member::WakeBatch wakes;
  };
  member::Member* member_ = nullptr;
  std::vector<Slot> slots_;
};

class MemberHeader final : public HeaderSource {
 public:
  explicit MemberHeader(const member::Member& member) : member_(member) {}
  void fill(etcdserverpb::ResponseHeader* header) const override {
    header->set_cluster_id(member_.cluster_id());
    header->set_member_id(member_.member_id());
    header->set_raft_term(member_.term());
  }

 private:
  const member::Member& member_;
};

struct Counters {
  explicit Counters(metrics::Registry& registry);
  metrics::Counter& puts;
  metrics::Counter& ranges;
  metrics::Counter& deletes;
  metrics::Counter& txns;
  metrics::Counter& leases_granted;
  metrics::Counter& leases_revoked;
  metrics::Counter& leases_renewed;
};

// All outlive the router that the services are registered with.
struct Context {
  member::Member& member;
  const HeaderSource& header;
  Readers& readers;
  Counters& counters;
  Limits limits;
  LargeReads* large = nullptr;  // null: every answer is made where the call is handled
};

// What a learner refuses: all but its status and reads of what is at hand, as etcd's.
http::Admission admission(const member::Member& member);

// One function a service, each in the file of its name.
void add_kv(http::Router& router, Context& context);
void add_lease(http::Router& router, Context& context);
void add_cluster(http::Router& router, Context& context);
void add_maintenance(http::Router& router, Context& context);
void add_election(http::Router& router, Context& context);
void add_later(http::Router& router);  // refused by name
void add_health(http::Router& router, Context& context);
void add_info(http::Router& router, Context& context, metrics::Registry& registry);  // /metrics and its gauges
void add_version(http::Router& router);                                              // /version
void add_peer_info(http::Router& router, Context& context);                          // /members

// A response that is there already, and too large to be encoded on an io thread.
class LargeResponse final : public LargeRead {
 public:
  explicit LargeResponse(apply::Message response) : response_(std::move(response)) {}
  Result<bool> next(mvcc::Reader&, http::PartsEncoder& to) override {
    to.add(*response_);
    response_.reset();
    return true;
  }
  void restart() override {}

 private:
  apply::Message response_;
};
inline constexpr size_t kLargeResponseBytes = 256 * 1024;

// Proposes what the call asks for and answers the call with what apply made of it.
template <class Response>
void propose(Context& context, conclavepb::Entry command, http::Reply reply) {
  // std::function wants to be copied, a Reply does not.
  auto shared = std::make_shared<http::Reply>(std::move(reply));
  context.member.propose(std::move(command), [&context, shared](Result<apply::Message> done) {
    if (!done) return shared->send(::fail(std::move(done.error())));
    auto* response = static_cast<Response*>(done->get());
    context.header.fill(response->mutable_header());
    if (context.large != nullptr && response->ByteSizeLong() > kLargeResponseBytes) {
      return context.large->submit(std::make_unique<LargeResponse>(std::move(*done)), std::move(*shared));
    }
    shared->send(std::unique_ptr<const google::protobuf::Message>(std::move(*done)));
  });
}

// What a read that failed is answered with. Damage stops the member: the next read might not notice it.
inline void refuse_read(Context& context, http::Reply reply, const Error& error) {
  if (error.code == Code::kDataLoss) context.member.damaged(error);
  reply.send(::fail(error));
}

// Calls read(reader, reply) with a reader that has seen everything that was acknowledged before the call (with
// `serializable`: whatever is at hand), on this io thread if possible.
template <class Read>
void with_reader(Context& context, size_t io_thread, bool serializable, http::Reply reply, Read read) {
  if (serializable || context.member.linearizable_now()) {
    read(context.readers.of(io_thread), std::move(reply));
    return;
  }
  auto shared = std::make_shared<http::Reply>(std::move(reply));
  context.member.linearize([&context, shared, read = std::move(read)](Status status) mutable {
    if (!status) return shared->send(::fail(std::move(status.error())));
    const auto reader = context.member.reader();
    read(*reader, std::move(*shared));
  });
}

}  // namespace rpc
