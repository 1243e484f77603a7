#include "watch/range_index.h"

#include "base/check.h"

namespace watch {
namespace {

// Priorities need to look random to whoever picks the ranges, not to be secret: the depth stays logarithmic unless
// somebody orders 2^64 creations on purpose.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Negative, zero, positive: like strcmp. A range without an end ends after all others.
int compare_ends(const KeyRange& a, const KeyRange& b) {
  bool a_open = a.kind == KeyRange::Kind::kFromKey;
  bool b_open = b.kind == KeyRange::Kind::kFromKey;
  if (a_open || b_open) return static_cast<int>(a_open) - static_cast<int>(b_open);
  return a.end.compare(b.end);
}

int compare(const KeyRange& a, const KeyRange& b) {
  int order = a.key.compare(b.key);
  return order != 0 ? order : compare_ends(a, b);
}

void update(Group* node) {
  node->farthest = node;
  for (Group* child : {node->left, node->right}) {
    if (child != nullptr && compare_ends(child->farthest->range, node->farthest->range) > 0) {
      node->farthest = child->farthest;
    }
  }
}

// Splits into what is before `at` and what is not.
void split(Group* node, const KeyRange& at, Group** before, Group** rest) {
  if (node == nullptr) {
    *before = *rest = nullptr;
    return;
  }
  if (compare(node->range, at) < 0) {
    split(node->right, at, &node->right, rest);
    *before = node;
  } else {
    split(node->left, at, before, &node->left);
    *rest = node;
  }
  update(node);
}

Group* insert(Group* node, Group* added) {
  if (node == nullptr || added->priority > node->priority) {
    split(node, added->range, &added->left, &added->right);
    update(added);
    return added;
  }
  Group*& side = compare(added->range, node->range) < 0 ? node->left : node->right;
  side = insert(side, added);
  update(node);
  return node;
}

Group* merge(Group* a, Group* b) {
  if (a == nullptr) return b;
  if (b == nullptr) return a;
  Group* top = a->priority > b->priority ? a : b;
  if (top == a) {
    a->right = merge(a->right, b);
  } else {
    b->left = merge(a, b->left);
  }
  update(top);
  return top;
}

Group* remove(Group* node, Group* gone) {
  CHECK(node != nullptr, "a range that is not in the tree");
  if (node == gone) return merge(node->left, node->right);
  Group*& side = compare(gone->range, node->range) < 0 ? node->left : node->right;
  side = remove(side, gone);
  update(node);
  return node;
}

void destroy(Group* node) {
  if (node == nullptr) return;
  destroy(node->left);
  destroy(node->right);
  delete node;
}

}  // namespace

RangeIndex::~RangeIndex() { destroy(root_); }

Group* RangeIndex::enter(const KeyRange& range) {
  Group* group = nullptr;
  if (range.kind == KeyRange::Kind::kKey) {
    auto found = keys_.find(range.key);
    if (found != keys_.end()) group = found->second.get();
  } else {
    group = root_;
    while (group != nullptr) {
      int order = compare(range, group->range);
      if (order == 0) break;
      group = order < 0 ? group->left : group->right;
    }
  }
  if (group == nullptr) {
    auto made = std::make_unique<Group>();
    made->range = range;
    group = made.get();
    if (range.kind == KeyRange::Kind::kKey) {
      keys_.emplace(group->range.key, std::move(made));
    } else {
      made->priority = mix(++made_);
      root_ = insert(root_, made.release());
      ranges_++;
    }
  }
  group->watchers++;
  return group;
}

void RangeIndex::leave(Group* group) {
  CHECK(group->watchers > 0, group->range.key);
  if (--group->watchers > 0) return;
  CHECK(group->tip.empty() && group->behind.empty(), group->range.key);
  CHECK(group->pending.empty(), group->range.key);
  if (group->range.kind == KeyRange::Kind::kKey) {
    keys_.erase(keys_.find(group->range.key));
    return;
  }
  root_ = remove(root_, group);
  ranges_--;
  delete group;
}

}  // namespace watch
