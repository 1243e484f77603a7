#include "apply/read_txn.h"

#include "apply/compare.h"
#include "apply/txn.h"
#include "base/check.h"

namespace apply {
namespace {

// A reader steps forward when a compaction passed it; what was read before that is of another revision.
constexpr int kAttemptsMax = 16;

// A revision that cannot be read fails all of it, so nothing needs to be validated first: there is nothing to undo.
Status read_branch(mvcc::Reader& reader, const etcdserverpb::TxnRequest& request, Path::const_iterator& path,
                   etcdserverpb::TxnResponse* response) {
  const bool succeeded = *path++;
  response->set_succeeded(succeeded);
  for (const auto& operation : succeeded ? request.success() : request.failure()) {
    auto* part = response->add_responses();
    if (operation.has_request_txn()) {
      part->mutable_response_txn()->mutable_header();
      TRY(read_branch(reader, operation.request_txn(), path, part->mutable_response_txn()));
      continue;
    }
    CHECK(operation.has_request_range(), "a transaction that only reads");
    TRY(check_revision(operation.request_range(), reader.at().revision, reader.at().compacted));
    TRY(reader.range(operation.request_range(), part->mutable_response_range()));
    part->mutable_response_range()->mutable_header()->set_revision(reader.at().revision);
  }
  return {};
}

Status read_once(mvcc::Reader& reader, const etcdserverpb::TxnRequest& request, etcdserverpb::TxnResponse* response) {
  ReaderView view(reader);
  TRY_ASSIGN(const Path path, choose_path(view, request));
  auto position = path.begin();
  TRY(read_branch(reader, request, position, response));
  response->mutable_header()->set_revision(reader.at().revision);
  return {};
}

}  // namespace

Status read_txn(mvcc::Reader& reader, const etcdserverpb::TxnRequest& request, etcdserverpb::TxnResponse* response) {
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    const int64_t revision = reader.at().revision;
    response->Clear();
    Status done = read_once(reader, request, response);
    if (reader.at().revision == revision) return done;
  }
  return fail(Code::kUnavailable, "etcdserver: request timed out");
}

}  // namespace apply
