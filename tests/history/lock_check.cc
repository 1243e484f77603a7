#include "history/lock_check.h"

#include <algorithm>

namespace history {
namespace {

std::string describe(const LockHold& hold) {
  return history::describe(hold.acquired) + " .. " + history::describe(hold.until) + " client " +
         std::to_string(hold.client) + " holds " + hold.lock + " with token " + std::to_string(hold.token);
}

Verdict fault(const std::string& what, const LockHold& a, const LockHold& b) {
  return violation(what + ":\n  " + describe(a) + "\n  " + describe(b) + "\n");
}

Verdict check_lock(std::vector<const LockHold*> holds) {
  std::stable_sort(holds.begin(), holds.end(),
                   [](const LockHold* a, const LockHold* b) { return a->acquired < b->acquired; });
  const LockHold* longest = nullptr;  // of the holds before
  const LockHold* highest = nullptr;
  for (const LockHold* hold : holds) {
    if (longest != nullptr && longest->until > hold->acquired) return fault("two holders at once", *longest, *hold);
    if (highest != nullptr && highest->token >= hold->token)
      return fault("a token that does not rise", *highest, *hold);
    if (longest == nullptr || hold->until > longest->until) longest = hold;
    highest = hold;
  }
  return {};
}

}  // namespace

Verdict check_locks(const std::vector<LockHold>& holds, const std::vector<FencedUse>& uses) {
  std::map<std::string, std::vector<const LockHold*>> by_lock;
  std::map<std::pair<std::string, int64_t>, const LockHold*> by_token;
  for (const LockHold& hold : holds) {
    by_lock[hold.lock].push_back(&hold);
    by_token.emplace(std::pair(hold.lock, hold.token), &hold);
  }
  for (const auto& [lock, list] : by_lock) {
    if (Verdict verdict = check_lock(list); !verdict.ok()) return verdict;
  }
  std::map<std::string, const FencedUse*> newest;
  for (const FencedUse& use : uses) {
    const std::string text = "client " + std::to_string(use.client) + " with token " + std::to_string(use.token);
    const auto hold = by_token.find({use.lock, use.token});
    if (hold == by_token.end() || hold->second->client != use.client) {
      return violation(use.lock + " was used by " + text + ", who never held it\n");
    }
    const FencedUse*& last = newest[use.lock];
    if (last != nullptr && use.token < last->token) {
      return violation(use.lock + " was used by " + text + " after token " + std::to_string(last->token) + "\n  " +
                       describe(*hold->second) + "\n");
    }
    last = &use;
  }
  return {};
}

}  // namespace history
