#include "endpoints.h"

#include <algorithm>

#include "random.h"

namespace conclave::inline v1::internal {

namespace {
constexpr std::chrono::milliseconds kLeftAloneMin{250};
constexpr std::chrono::milliseconds kLeftAloneMax{5000};
constexpr int kDoublingsMax = 5;

bool in(std::uint64_t set, std::size_t i) { return (set >> i & 1) != 0; }
}  // namespace

Endpoints::Endpoints(const std::vector<std::string>& urls) {
  for (const std::string& url : urls) {
    Entry entry;
    entry.url = url;
    entry.member = make_member(url);
    entries_.push_back(std::move(entry));
  }
  current_ = random_below(entries_.size());  // clients spread over the members
}

std::size_t Endpoints::choose(std::uint64_t tried) {
  std::scoped_lock lock(mutex_);
  const auto now = BootClock::now();
  std::size_t fallback = current_;
  bool have_fallback = false;
  for (std::size_t n = 0; n < entries_.size(); ++n) {
    const std::size_t i = (current_ + n) % entries_.size();
    if (in(tried, i)) continue;
    if (entries_[i].bad_until <= now) return i;
    if (!have_fallback) fallback = i;
    have_fallback = true;
  }
  return fallback;
}

bool Endpoints::any_untried(std::uint64_t tried) const {
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (!in(tried, i)) return true;
  return false;
}

void Endpoints::good(std::size_t i) {
  std::scoped_lock lock(mutex_);
  entries_[i].failures = 0;
  entries_[i].bad_until = {};
  current_ = i;
  connected_ = true;
}

void Endpoints::bad(std::size_t i) {
  std::scoped_lock lock(mutex_);
  Entry& entry = entries_[i];
  const auto now = BootClock::now();
  entry.bad_until = now + std::min(kLeftAloneMax, kLeftAloneMin * (1 << std::min(entry.failures, kDoublingsMax)));
  ++entry.failures;
  entry.cluster = 0;
  if (current_ == i) current_ = (i + 1) % entries_.size();
  connected_ =
      connected_ && std::any_of(entries_.begin(), entries_.end(), [](const Entry& e) { return e.failures == 0; });
}

bool Endpoints::connected() const {
  std::scoped_lock lock(mutex_);
  return connected_;
}

bool Endpoints::belongs(std::size_t i, std::uint64_t cluster) {
  if (cluster == 0) return true;  // an answer that does not say
  std::scoped_lock lock(mutex_);
  entries_[i].cluster = cluster;
  if (cluster == cluster_) return true;
  for (const Entry& entry : entries_)
    if (entry.cluster != 0 && entry.cluster != cluster) return false;
  if (cluster_ != 0) ++generation_;
  cluster_ = cluster;
  return true;
}

std::uint64_t Endpoints::generation() const {
  std::scoped_lock lock(mutex_);
  return generation_;
}

}  // namespace conclave::inline v1::internal
