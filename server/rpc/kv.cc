// KV: range, put, delete, txn, compaction. Checks the shape; reads are answered here, writes go through the log.
#include "apply/read_txn.h"
#include "apply/shape.h"
#include "rpc/context.h"

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

void range(Context& context, http::UnaryCall call) {
  auto request = call.take<RangeRequest>();
  if (auto sound = apply::check_range(*request); !sound) return call.reply.send(::fail(sound.error()));
  context.counters.ranges.add();
  const bool serializable = request->serializable();
  std::shared_ptr<const RangeRequest> shared = std::move(request);
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
