// The members a client knows, which of them to use next, and which to leave alone for a while. Safe from all threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "clock.h"
#include "http/transport.h"

namespace conclave::inline v1::internal {

constexpr std::size_t kEndpointsMax = 64;

class Endpoints {
 public:
  explicit Endpoints(const std::vector<std::string>& urls);  // 1 to kEndpointsMax

  std::size_t size() const { return entries_.size(); }
  const std::string& url(std::size_t i) const { return entries_[i].url; }
  Member& member(std::size_t i) { return *entries_[i].member; }

  // The one in use, or the next that is not in `tried` (a bit for each) and not left alone; if need be one that is.
  std::size_t choose(std::uint64_t tried);
  bool any_untried(std::uint64_t tried) const;

  void good(std::size_t i);  // it answered
  void bad(std::size_t i);   // it did not, or cannot work: others come first for a while
  bool connected() const;    // one answered, and not all have failed since

  // Whether member `i`, which reports this cluster id, belongs to the cluster known so far. When all that answer share
  // a new id, the cluster was replaced (restored from a backup): then that one is known, and the generation rises.
  bool belongs(std::size_t i, std::uint64_t cluster);
  std::uint64_t generation() const;

 private:
  struct Entry {
    std::string url;
    std::shared_ptr<Member> member;
    TimePoint bad_until{};
    int failures = 0;
    std::uint64_t cluster = 0;  // as it reported last, if it still answers
  };

  mutable std::mutex mutex_;  // guards current_, connected_, all that changes in an entry
  std::vector<Entry> entries_;
  std::size_t current_ = 0;
  bool connected_ = false;
  std::uint64_t cluster_ = 0;
  std::uint64_t generation_ = 0;
};

}  // namespace conclave::inline v1::internal
