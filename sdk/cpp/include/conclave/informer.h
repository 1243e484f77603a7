// Keys below a prefix, and a function that makes the world agree with each of them.
//
// It is told of the state, not of the changes: a key that changed five times while its turn was coming is reconciled
// once, with what it holds then. It goes on through restarts of the server; after a gap in the history every key is
// reconciled again. A key that was deleted while the program was not running is not told of: look for what is left over
// when wait_ready() has returned.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "conclave/call.h"
#include "conclave/client.h"
#include "conclave/kv.h"
#include "conclave/result.h"
#include "conclave/types.h"

namespace conclave {
inline namespace v1 {

// When to look at a key again that does not change.
class Requeue {
 public:
  static Requeue done() { return Requeue(); }  // with its next change, or the next resync
  static Requeue in(std::chrono::milliseconds delay) { return Requeue(delay); }  // then, or with its next change
  std::optional<std::chrono::milliseconds> delay() const { return delay_; }

 private:
  Requeue() = default;
  explicit Requeue(std::chrono::milliseconds delay) : delay_(delay) {}
  std::optional<std::chrono::milliseconds> delay_;
};

// What one key holds.
template <class T>
struct Informed {
  T value;
  std::string key = {};  // the whole key
  Revision create_revision{};
  Revision mod_revision{};
  std::int64_t version = 0;
  LeaseId lease{};
};

namespace internal {

// What the informer does without knowing the type: an Informed<T> travels as a shared_ptr<const void>.
struct InformerHooks {
  std::string prefix;
  int workers = 1;
  std::chrono::milliseconds resync{0};
  std::chrono::milliseconds retry_max{0};
  std::function<Result<std::shared_ptr<const void>>(const KeyValue&)> decode;
  std::function<Result<Requeue>(const std::string& key, const std::shared_ptr<const void>& now)> reconcile;
  std::function<void(const std::string& key, const Error&)> on_error;
};

struct InformerState {
  std::map<std::string, std::shared_ptr<const void>, std::less<>> objects;  // by key
  std::size_t refused = 0;
  Revision revision{};
  bool ready = false;
};

class [[nodiscard]] InformerHandle {
 public:
  static Result<InformerHandle> open(const Client& client, InformerHooks hooks);
  InformerHandle(InformerHandle&&) noexcept;
  InformerHandle& operator=(InformerHandle&&) noexcept;
  ~InformerHandle();
  Status wait_ready(const CallOptions& call) const;
  std::shared_ptr<const InformerState> snapshot() const;
  std::shared_ptr<const void> get(std::string_view key) const;

 private:
  class Impl;
  explicit InformerHandle(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace internal

// All keys at one revision. Immutable, a cheap copy.
template <class T>
class InformerSnapshot {
 public:
  using Object = Informed<T>;

  std::shared_ptr<const Object> find(std::string_view key) const {  // null: it does not exist, or was refused
    const auto found = state_->objects.find(key);
    return found == state_->objects.end() ? nullptr : std::static_pointer_cast<const Object>(found->second);
  }
  template <class Each>
  void for_each(Each&& each) const {  // each(const Informed<T>&), by key
    for (const auto& [key, object] : state_->objects) each(*static_cast<const Object*>(object.get()));
  }
  std::size_t size() const { return state_->objects.size(); }
  std::size_t refused() const { return state_->refused; }  // keys that decode refused; they are not among the others
  Revision revision() const { return state_->revision; }
  bool ready() const { return state_->ready; }  // false: there was no list yet

 private:
  template <class>
  friend class Informer;
  explicit InformerSnapshot(std::shared_ptr<const internal::InformerState> state) : state_(std::move(state)) {}
  std::shared_ptr<const internal::InformerState> state_;
};

template <class T>
struct InformerOptions {
  std::string prefix = {};  // "tenants/"
  // On a callback thread. What it refuses (or throws at) is told to on_error and left out: it is not in the snapshot,
  // and not reconciled as long as it stays like that. A key is not taken for gone because it cannot be read.
  std::function<Result<T>(const KeyValue&)> decode = nullptr;
  int workers = 1;                             // threads that reconcile, 1 to 64
  std::chrono::milliseconds resync{0};         // every key again, so often; zero: never
  std::chrono::milliseconds retry_max{30000};  // the back-off after errors of one key grows from 50 ms to this
  // On one of the workers, never two of them with the same key; it may take its time. `now` is null when the key is
  // gone; else it is what the key holds as far as is known, and snapshot() is at least as new. An error, or an
  // exception, brings the key back after a back-off of its own, or with its next change. Not before the whole prefix
  // was read once.
  std::function<Result<Requeue>(const std::string& key, const std::shared_ptr<const Informed<T>>& now)> reconcile =
      nullptr;
  // On a callback thread: what decode refused and what reconcile failed with, each time. Without it they are logged;
  // exceptions always are.
  std::function<void(const std::string& key, const Error&)> on_error = nullptr;
};

template <class T>
class [[nodiscard]] Informer {
 public:
  using Object = Informed<T>;
  using Snapshot = InformerSnapshot<T>;

  // Checks the options and returns at once; it starts by itself when a member answers.
  static Result<Informer> open(const Client& client, InformerOptions<T> options) {
    internal::InformerHooks hooks{.prefix = std::move(options.prefix),
                                  .workers = options.workers,
                                  .resync = options.resync,
                                  .retry_max = options.retry_max,
                                  .decode = nullptr,
                                  .reconcile = nullptr,
                                  .on_error = std::move(options.on_error)};
    if (options.decode) {
      hooks.decode = [decode = std::move(options.decode)](const KeyValue& kv) -> Result<std::shared_ptr<const void>> {
        auto value = decode(kv);
        if (!value) return fail(std::move(value.error()));
        return std::shared_ptr<const void>(std::make_shared<const Object>(Object{.value = std::move(*value),
                                                                                 .key = kv.key,
                                                                                 .create_revision = kv.create_revision,
                                                                                 .mod_revision = kv.mod_revision,
                                                                                 .version = kv.version,
                                                                                 .lease = kv.lease}));
      };
    }
    if (options.reconcile) {
      hooks.reconcile = [reconcile = std::move(options.reconcile)](const std::string& key, const auto& now) {
        return reconcile(key, std::static_pointer_cast<const Object>(now));
      };
    }
    auto handle = internal::InformerHandle::open(client, std::move(hooks));
    if (!handle) return fail(std::move(handle.error()));
    return Informer(std::move(*handle));
  }

  // The destructor waits for reconcile and callbacks that run, except from inside of them; no other starts.

  // Until the whole prefix was read once; without a timeout for as long as it takes. Not until all is reconciled.
  Status wait_ready(CallOptions call = {}) const { return handle_.wait_ready(call); }
  // Of one revision, never older than the one before (but for a cluster that was restored).
  Snapshot snapshot() const { return Snapshot(handle_.snapshot()); }
  std::shared_ptr<const Object> get(std::string_view key) const {  // as snapshot().find(key), without a snapshot
    return std::static_pointer_cast<const Object>(handle_.get(key));
  }

 private:
  explicit Informer(internal::InformerHandle handle) : handle_(std::move(handle)) {}
  internal::InformerHandle handle_;
};

}  // namespace v1
}  // namespace conclave
