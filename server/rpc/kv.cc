// KV: range, put, delete, txn, compaction. Checks the shape; reads are answered here, writes go through the log.
#include <algorithm>
#include <optional>

#include "apply/read_txn.h"
#include "apply/shape.h"
#include "rpc/context.h"
#include "rpc/range_read.h"

namespace rpc {
namespace {

using etcdserverpb::CompactionRequest;
using etcdserverpb::CompactionResponse;
using etcdserverpb::DeleteRangeRequest;
using etcdserverpb::DeleteRangeResponse;
using etcdserverpb::PutRequest;
using etcdserverpb::PutResponse;
using etcdserverpb::RangeRequest;
using etcdserverpb::RangeResponse;
using etcdserverpb::TxnRequest;
using etcdserverpb::TxnResponse;

Status check_size(const Context& context, const google::protobuf::Message& request) {
  if (request.ByteSizeLong() <= context.limits.request_bytes_max) return {};
  return ::fail(Code::kInvalidArgument, kErrorTooLarge);
}

// Reads of up to so much, and over so many keys at most, are done where they come in: a fraction of a millisecond.
constexpr int64_t kSmallReadBytes = 256 * 1024;
constexpr int64_t kSmallReadKeys = 8 * 1024;
// Keys whose values one page of a large range may have when nothing more is known than that each is below the limit of
// a request; more when the store as a whole is not much larger than that.
constexpr int kPageKeysMax = 64;
constexpr int kSmallStorePageKeysMax = 4096;
constexpr int64_t kSmallStoreBytes = 64LL << 20;

// What ranges take is estimated from the average key, history and all. That may be wrong, but not by much: among so few
// keys a handful of large ones shows.
class SizeEstimate {
 public:
  explicit SizeEstimate(Context& context) : context_(context) {}

  bool is_small(const RangeRequest& request) {
    if (request.range_end().empty()) return true;
    if (!state_) state_ = context_.member.state();
    if (state_->keys > kSmallReadKeys) return false;
    if (request.count_only()) return true;
    int64_t keys = state_->keys;
    const int64_t each = state_->store.size_bytes / std::max<int64_t>(keys, 1);
    if (keys * each <= kSmallReadBytes) return true;
    if (request.limit() > 0 && request.limit() * each <= kSmallReadBytes) return true;
    RangeRequest count;
    count.set_key(request.key());
    count.set_range_end(request.range_end());
    count.set_revision(request.revision());
    count.set_count_only(true);
    RangeResponse counted;
    if (!context_.member.reader()->range(count, &counted)) return true;  // and will be refused again
    return counted.count() * each <= kSmallReadBytes;
  }

 private:
  Context& context_;
  std::optional<member::Member::State> state_;
};

bool is_small(SizeEstimate& estimate, const TxnRequest& request) {
  for (const auto* operations : {&request.success(), &request.failure()}) {
    for (const auto& operation : *operations) {
      if (operation.has_request_range() && !estimate.is_small(operation.request_range())) return false;
      if (operation.has_request_txn() && !is_small(estimate, operation.request_txn())) return false;
    }
  }
  return true;
}

class LargeRange final : public LargeRead {
 public:
  LargeRange(Context& context, std::shared_ptr<const RangeRequest> request)
      : context_(context), read_(std::move(request)) {}
  Result<bool> next(mvcc::Reader& reader, http::PartsEncoder& to) override {
    if (keys_max_ == 0) {  // the first page: like the average key
      const member::Member::State state = context_.member.state();
      const int64_t each = state.store.size_bytes / std::max<int64_t>(state.keys, 1);
      keys_max_ = static_cast<int>(std::clamp<int64_t>(kSmallReadBytes / std::max<int64_t>(each, 1), 1, kPageKeysMax));
      is_store_small_ = state.store.size_bytes <= kSmallStoreBytes;
    }
    RangeResponse part;
    TRY_ASSIGN(const bool last, read_.next(reader, keys_max_, &part));
    if (part.has_header()) {
      context_.header.fill(part.mutable_header());
      keys_max_ = is_store_small_ ? kSmallStorePageKeysMax : kPageKeysMax;
    }
    to.add(part);
    return last;
  }
  void restart() override { read_.restart(); }
  bool whole() const override { return read_.in_one_piece(); }

 private:
  Context& context_;
  RangeRead read_;
  int keys_max_ = 0;
  bool is_store_small_ = false;
};

class LargeTxn final : public LargeRead {
 public:
  LargeTxn(Context& context, std::shared_ptr<const TxnRequest> request)
      : context_(context), request_(std::move(request)) {}
  Result<bool> next(mvcc::Reader& reader, http::PartsEncoder& to) override {
    TxnResponse response;
    TRY(apply::read_txn(reader, *request_, &response));
    context_.header.fill(response.mutable_header());
    to.add(response);
    return true;
  }
  void restart() override {}
  bool whole() const override { return true; }

 private:
  Context& context_;
  const std::shared_ptr<const TxnRequest> request_;
};

// As with_reader(), for what may be large.
template <class Read, class Request>
void read_large(Context& context, bool serializable, std::shared_ptr<const Request> request, http::Reply reply) {
  if (serializable || context.member.linearizable_now()) {
    return context.large->submit(std::make_unique<Read>(context, std::move(request)), std::move(reply));
  }
  auto shared = std::make_shared<http::Reply>(std::move(reply));
  context.member.linearize([&context, shared, request = std::move(request)](Status status) mutable {
    if (!status) return shared->send(::fail(std::move(status.error())));
    context.large->submit(std::make_unique<Read>(context, std::move(request)), std::move(*shared));
  });
}

void range(Context& context, http::UnaryCall call) {
  auto request = call.take<RangeRequest>();
  if (auto sound = apply::check_range(*request); !sound) return call.reply.send(::fail(sound.error()));
  context.counters.ranges.add();
  const bool serializable = request->serializable();
  std::shared_ptr<const RangeRequest> shared = std::move(request);
  if (context.large != nullptr && !SizeEstimate(context).is_small(*shared)) {
    return read_large<LargeRange>(context, serializable, std::move(shared), std::move(call.reply));
  }
  with_reader(context, call.info.io_thread, serializable, std::move(call.reply),
              [&context, shared](mvcc::Reader& reader, http::Reply reply) {
                RangeResponse response;
                if (auto read = reader.range(*shared, &response); !read) {
                  return refuse_read(context, std::move(reply), read.error());
                }
                context.header.fill(response.mutable_header());
                response.mutable_header()->set_revision(reader.at().revision);
                reply.send_now(response);
              });
}

void put(Context& context, http::UnaryCall call) {
  auto request = call.take<PutRequest>();
  if (auto sound = apply::check_put(*request); !sound) return call.reply.send(::fail(sound.error()));
  if (auto fits = check_size(context, *request); !fits) return call.reply.send(::fail(fits.error()));
  context.counters.puts.add();
  conclavepb::Entry command;
  command.set_allocated_put(request.release());
  propose<PutResponse>(context, std::move(command), std::move(call.reply));
}

void delete_range(Context& context, http::UnaryCall call) {
  auto request = call.take<DeleteRangeRequest>();
  if (auto sound = apply::check_delete_range(*request); !sound) return call.reply.send(::fail(sound.error()));
  if (auto fits = check_size(context, *request); !fits) return call.reply.send(::fail(fits.error()));
  context.counters.deletes.add();
  conclavepb::Entry command;
  command.set_allocated_delete_range(request.release());
  propose<DeleteRangeResponse>(context, std::move(command), std::move(call.reply));
}

void read_txn(Context& context, size_t io_thread, std::shared_ptr<const TxnRequest> request, http::Reply reply) {
  if (SizeEstimate estimate(context); context.large != nullptr && !is_small(estimate, *request)) {
    const bool serializable = apply::is_serializable(*request);  // before the request is moved
    return read_large<LargeTxn>(context, serializable, std::move(request), std::move(reply));
  }
  with_reader(context, io_thread, apply::is_serializable(*request), std::move(reply),
              [&context, request](mvcc::Reader& reader, http::Reply answer) {
                TxnResponse response;
                if (auto read = apply::read_txn(reader, *request, &response); !read) {
                  return refuse_read(context, std::move(answer), read.error());
                }
                context.header.fill(response.mutable_header());
                answer.send_now(response);
              });
}

void txn(Context& context, http::UnaryCall call) {
  auto request = call.take<TxnRequest>();
  if (auto sound = apply::check_txn(*request, context.limits.txn_ops_max); !sound) {
    return call.reply.send(::fail(sound.error()));
  }
  context.counters.txns.add();
  if (apply::is_read_only(*request)) {
    return read_txn(context, call.info.io_thread, std::move(request), std::move(call.reply));
  }
  if (auto fits = check_size(context, *request); !fits) return call.reply.send(::fail(fits.error()));
  conclavepb::Entry command;
  command.set_allocated_txn(request.release());
  propose<TxnResponse>(context, std::move(command), std::move(call.reply));
}

void compact(Context& context, http::UnaryCall call) {
  conclavepb::Entry command;
  command.set_allocated_compaction(call.take<CompactionRequest>().release());
  propose<CompactionResponse>(context, std::move(command), std::move(call.reply));
}

}  // namespace

void add_kv(http::Router& router, Context& context) {
  const auto add = [&](const char* name, const char* path, const google::protobuf::Message& request,
                       void (*handle)(Context&, http::UnaryCall)) {
    router.unary({.name = std::string("/etcdserverpb.KV/") + name,
                  .paths = {path},
                  .request = &request,
                  .handler = [&context, handle](http::UnaryCall call) { handle(context, std::move(call)); }});
  };
  add("Range", "/v3/kv/range", RangeRequest::default_instance(), range);
  add("Put", "/v3/kv/put", PutRequest::default_instance(), put);
  add("DeleteRange", "/v3/kv/deleterange", DeleteRangeRequest::default_instance(), delete_range);
  add("Txn", "/v3/kv/txn", TxnRequest::default_instance(), txn);
  add("Compact", "/v3/kv/compaction", CompactionRequest::default_instance(), compact);
}

}  // namespace rpc
