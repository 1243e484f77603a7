// The choice among the instances of one service, and what is remembered of each: calls pending, failures in a row.
// Safe from all threads; every operation is short and in memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "clock.h"
#include "conclave/discovery.h"

namespace conclave::inline v1::internal {

class Picker {
 public:
  struct Load;  // of one instance, as long as it is listed or in use
  struct Choice {
    std::shared_ptr<const InstanceList> list;
    std::size_t index = 0;
    std::shared_ptr<Load> load;
    const Instance& instance() const { return list->instances[index]; }
  };

  explicit Picker(Balancer balancer) : balancer_(balancer) {}

  void update(std::shared_ptr<const InstanceList> list);
  // Nothing: nobody can be picked. Counts as pending until released.
  std::optional<Choice> pick(const std::vector<std::string>& exclude, TimePoint now);
  void failed(const Choice& choice, TimePoint now);
  void released(const Choice& choice, bool had_failed);

 private:
  std::size_t choose(const std::vector<std::size_t>& candidates);
  std::size_t round_robin(const std::vector<std::size_t>& candidates);
  std::size_t random(const std::vector<std::size_t>& candidates) const;
  std::vector<std::size_t> least_pending(const std::vector<std::size_t>& candidates) const;
  std::int64_t weight(std::size_t i) const { return list_->instances[i].weight; }

  const Balancer balancer_;
  std::mutex mutex_;
  std::shared_ptr<const InstanceList> list_ = std::make_shared<const InstanceList>();
  std::vector<std::shared_ptr<Load>> loads_;  // beside list_->instances
};

}  // namespace conclave::inline v1::internal
