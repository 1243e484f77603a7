#include "rpc/hash_read.h"

#include <algorithm>
#include <utility>

#include "mvcc/content_hash.h"

namespace rpc {
namespace {

using etcdserverpb::HashKVRequest;
using etcdserverpb::HashKVResponse;
using etcdserverpb::HashRequest;
using etcdserverpb::HashResponse;

constexpr int64_t kRowsPerPiece = 4'000;
constexpr size_t kBytesPerPiece = 1 << 20;

uint64_t hash_of(const mvccpb::KeyValue& kv) {
  return mvcc::content_hash_of(kv.key(), kv.value(), kv.create_revision(), kv.mod_revision(), kv.version(), kv.lease());
}

}  // namespace

void KvHash::add(uint64_t number) {
  hash_ = mvcc::hash_bytes({reinterpret_cast<const char*>(&number), sizeof number}, hash_);
}

Status KvHash::begin(mvcc::Reader& reader) {
  const mvcc::Published& at = reader.at();
  if (asked_ > 0 && asked_ < at.compacted) return fail(Code::kOutOfRange, mvcc::kErrorCompacted);
  if (asked_ > at.revision) return fail(Code::kOutOfRange, mvcc::kErrorFutureRevision);
  begun_ = true;
  hash_ = 0;
  compacted_ = at.compacted;
  revision_ = asked_ > 0 ? asked_ : at.revision;
  next_ = std::max<int64_t>(compacted_, 1) + 1;  // nothing was ever written at 1
  live_.reset();
  if (compacted_ <= 1) return {};
  auto all = std::make_shared<etcdserverpb::RangeRequest>();
  all->set_key(std::string(1, '\0'));
  all->set_range_end(std::string(1, '\0'));
  all->set_revision(compacted_);
  live_.emplace(std::move(all));
  return {};
}

Result<bool> KvHash::next(mvcc::Reader& reader) {
  if (!begun_) TRY(begin(reader));
  const Status read = live_ ? read_live(reader) : read_history(reader);
  if (!read) {
    if (read.error().message != mvcc::kErrorCompacted || restarts_++ >= kRestartsMax) return ::fail(read.error());
    begun_ = false;  // what is compacted now begin() will see
    return false;
  }
  latest_ = reader.at().revision;
  return !live_ && next_ > revision_;
}

Status KvHash::read_live(mvcc::Reader& reader) {
  etcdserverpb::RangeResponse page;
  TRY_ASSIGN(const bool last, live_->next(reader, kRowsPerPiece, &page));
  for (const mvccpb::KeyValue& kv : page.kvs()) add(hash_of(kv));
  if (last) live_.reset();
  return {};
}

Status KvHash::read_history(mvcc::Reader& reader) {
  int64_t rows = 0;
  size_t bytes = 0;
  int64_t next = revision_ + 1;
  const auto wanted = [](std::string_view) { return true; };
  TRY(reader.history(next_, revision_, wanted, [&](const mvcc::EventBatch& batch) {
    add(static_cast<uint64_t>(batch.revision));
    for (const mvcc::Event& event : batch.events) {
      add(mvcc::content_hash_of(*event.kv));
      bytes += event.kv->key.size() + event.kv->value.size();
    }
    rows += static_cast<int64_t>(batch.events.size());
    const bool enough = rows >= kRowsPerPiece || bytes >= kBytesPerPiece;
    if (enough) next = batch.revision + 1;
    return !enough;
  }));
  next_ = next;
  return {};
}

namespace {

// On the threads for large reads: the answer is small, the reading is not.
template <class Response>
class HashRead final : public LargeRead {
 public:
  using Finish = void (*)(Context&, const KvHash&, Response&);
  HashRead(Context& context, int64_t revision, Finish finish) : context_(context), hash_(revision), finish_(finish) {}

  Result<bool> next(mvcc::Reader& reader, http::PartsEncoder& to) override {
    TRY_ASSIGN(const bool done, hash_.next(reader));
    if (done) to.add(response());
    return done;
  }
  bool one_piece_a_turn() const override { return true; }
  void restart() override {}

  // Where there are no such threads (tests).
  Result<Response> all_at_once() {
    while (true) {
      TRY_ASSIGN(const bool done, hash_.next(*context_.member.reader()));
      if (done) return response();
    }
  }

 private:
  Response response() {
    Response response;
    context_.header.fill(response.mutable_header());
    response.mutable_header()->set_revision(hash_.latest());
    finish_(context_, hash_, response);
    return response;
  }

  Context& context_;
  KvHash hash_;
  const Finish finish_;
};

template <class Response>
void answer(Context& context, std::unique_ptr<HashRead<Response>> read, http::Reply reply) {
  if (context.large != nullptr) return context.large->submit(std::move(read), std::move(reply));
  const auto response = read->all_at_once();
  if (!response) return refuse_read(context, std::move(reply), response.error());
  reply.send_now(*response);
}

}  // namespace

void hash_kv(Context& context, http::UnaryCall call) {
  const int64_t revision = call.take<HashKVRequest>()->revision();
  const auto finish = [](Context&, const KvHash& hash, HashKVResponse& response) {
    response.set_hash(hash.hash());
    response.set_compact_revision(hash.compacted());
    response.set_hash_revision(hash.revision());
  };
  answer(context, std::make_unique<HashRead<HashKVResponse>>(context, revision, finish), std::move(call.reply));
}

// What etcd documents as for tests only: everything, as it is now. Here: the key-values and the leases.
void hash(Context& context, http::UnaryCall call) {
  call.take<HashRequest>();
  const auto finish = [](Context& from, const KvHash& hash, HashResponse& response) {
    std::vector<lease::Info> leases = from.member.leases().list();
    std::sort(leases.begin(), leases.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    uint64_t all = hash.hash();
    for (const lease::Info& lease : leases) {
      const int64_t numbers[] = {lease.id, lease.ttl};
      all = mvcc::hash_bytes({reinterpret_cast<const char*>(numbers), sizeof numbers}, all);
    }
    response.set_hash(static_cast<uint32_t>(all ^ all >> 32));
  };
  answer(context, std::make_unique<HashRead<HashResponse>>(context, 0, finish), std::move(call.reply));
}

}  // namespace rpc
