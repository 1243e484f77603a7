// Which watchers want a key. Watchers of the same key or range form one Group; single keys are found by hash, ranges by
// a stab into a balanced tree that knows the greatest end below each node: O(log ranges + hits).
//
// Owns the groups. Guarded by the hub's mutex like everything in it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "watch/delivery.h"

namespace watch {

struct Watcher;

// [key, end), or one key, or everything from key on.
struct KeyRange {
  enum class Kind : uint8_t { kKey, kRange, kFromKey };
  Kind kind = Kind::kKey;
  Bytes key;
  Bytes end;  // of kRange only
};

struct Group {
  KeyRange range;
  std::vector<Watcher*> tip;                       // in no order; a watcher knows its slot
  std::vector<Watcher*> behind;                    // those that catch-up may serve
  size_t watchers = 0;                             // blocked ones are in neither list
  std::vector<std::shared_ptr<Delivery>> pending;  // being filled by one hand-out

  // The tree's.
  uint64_t priority = 0;
  Group* left = nullptr;
  Group* right = nullptr;
  const Group* farthest = nullptr;  // the one with the greatest end, of this node and below
};

class RangeIndex {
 public:
  RangeIndex() = default;
  ~RangeIndex();
  RangeIndex(const RangeIndex&) = delete;
  RangeIndex& operator=(const RangeIndex&) = delete;

  // The group of `range`, made when it is new; counts a watcher in, and out again.
  Group* enter(const KeyRange& range);
  void leave(Group* group);

  // Calls visit(Group&) for each group that has `key`, until it returns false.
  template <class Visit>
  void match(std::string_view key, Visit&& visit) const {
    if (!keys_.empty()) {
      auto found = keys_.find(key);
      if (found != keys_.end() && !visit(*found->second)) return;
    }
    if (root_ != nullptr) stab(root_, key, visit);
  }

  template <class Visit>
  void each(Visit&& visit) const {
    for (const auto& [key, group] : keys_) visit(*group);
    each_below(root_, visit);
  }

  size_t groups() const { return keys_.size() + ranges_; }

 private:
  template <class Visit>
  static void each_below(Group* node, Visit& visit) {
    if (node == nullptr) return;
    each_below(node->left, visit);
    visit(*node);
    each_below(node->right, visit);
  }
  static bool ends_after(const Group& group, std::string_view key) {
    return group.range.kind == KeyRange::Kind::kFromKey || key < group.range.end;
  }
  template <class Visit>
  static bool stab(Group* node, std::string_view key, Visit& visit) {
    for (; node != nullptr && ends_after(*node->farthest, key); node = node->right) {
      if (node->left != nullptr && !stab(node->left, key, visit)) return false;
      if (key < node->range.key) return true;  // so are all to the right
      if (ends_after(*node, key) && !visit(*node)) return false;
    }
    return true;
  }

  std::unordered_map<std::string_view, std::unique_ptr<Group>> keys_;  // the view is of the group's own key
  Group* root_ = nullptr;                                              // a treap ordered by (key, end); owned
  size_t ranges_ = 0;
  uint64_t made_ = 0;
};

}  // namespace watch
