#include "conclave/candidate.h"

#include <utility>

#include "candidate_core.h"

namespace conclave {
inline namespace v1 {

namespace {
constexpr std::chrono::seconds kTtlMin{1};
constexpr std::chrono::seconds kTtlMax{86400};
}  // namespace

class Candidate::Impl {
 public:
  Impl(std::shared_ptr<internal::Handle> handle, CandidateOptions options)
      : handle_(std::move(handle)),
        candidate(std::make_shared<internal::CandidateCore>(handle_->core(), std::move(options))) {
    candidate->start();
    closer_ = handle_->core()->on_close([candidate = candidate] { candidate->ask_to_stop("the client was closed"); });
  }
  ~Impl() {
    handle_->core()->forget_close(closer_);
    candidate->end();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

 private:
  const std::shared_ptr<internal::Handle> handle_;  // ends last

 public:
  const std::shared_ptr<internal::CandidateCore> candidate;

 private:
  std::uint64_t closer_ = 0;
};

Candidate::Candidate(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Candidate::Candidate(Candidate&&) noexcept = default;
Candidate& Candidate::operator=(Candidate&&) noexcept = default;
Candidate::~Candidate() = default;

Result<Candidate> Candidate::open(const Client& client, CandidateOptions options) {
  if (options.election.empty()) return fail(Code::kInvalidArgument, "election: missing");
  if (!options.lead) return fail(Code::kInvalidArgument, "lead: missing");
  if (options.ttl < kTtlMin || options.ttl > kTtlMax)
    return fail(Code::kInvalidArgument, "ttl: 1 s to " + std::to_string(kTtlMax.count()) + " s");
  const auto& handle = internal::Access::handle(client);
  if (handle->core()->closed()) return fail(internal::Core::closed_error());
  return Candidate(std::make_shared<Impl>(handle, std::move(options)));
}

CandidateState Candidate::state() const { return impl_->candidate->state(); }
Status Candidate::wait_ready(CallOptions call) const { return impl_->candidate->wait_ready(call); }
Status Candidate::close(CallOptions call) { return impl_->candidate->close(call); }

}  // namespace v1
}  // namespace conclave
