// Configuration from the cluster: bound to a type, validated before it is used, reloaded as one consistent set.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "conclave/call.h"
#include "conclave/client.h"
#include "conclave/discovery.h"
#include "conclave/fields.h"
#include "conclave/result.h"
#include "conclave/types.h"

namespace conclave {
inline namespace v1 {

template <class T>
struct ConfigSnapshot {
  T value = {};
  Revision revision{};
  ViewSource source = ViewSource::kNone;
};

namespace internal {

// What the reloader does without knowing the type: the value travels as a shared_ptr<const void> to a
// ConfigSnapshot<T>.
struct ReloaderHooks {
  std::string prefix;
  std::string cache_file;
  std::function<Result<std::shared_ptr<const void>>(const ConfigSet&, ViewSource)> build;
  std::function<void(const std::shared_ptr<const void>& before, const std::shared_ptr<const void>& now)> on_change;
  std::function<void(Revision, const Error&)> on_rejected;
  CallOptions call;
};

class [[nodiscard]] Reloader {
 public:
  static Result<Reloader> open(const Client& client, ReloaderHooks hooks);
  Reloader(Reloader&&) noexcept;
  Reloader& operator=(Reloader&&) noexcept;
  ~Reloader();
  std::shared_ptr<const void> snapshot() const;

 private:
  friend struct Access;
  class Impl;
  explicit Reloader(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace internal

template <class T>
struct ConfigOptions {
  std::string prefix = {};                                    // "config/orders/": all keys below, by their rest
  std::function<Result<T>(const ConfigSet&)> bind = nullptr;  // Fields<T> is one
  std::function<Status(const T&)> validate = nullptr;         // may be left out
  // The last good set (in a folder that exists), for a start without any member. That it cannot be written is only
  // logged (ClientOptions::log).
  std::string cache_file = {};
  // On a callback thread; conflated: a slow one sees the newest.
  std::function<void(const std::shared_ptr<const ConfigSnapshot<T>>& before,
                     const std::shared_ptr<const ConfigSnapshot<T>>& now)>
      on_change = nullptr;
  std::function<void(Revision, const Error& why)> on_rejected = nullptr;  // once for each revision; old values stay
  CallOptions call = {};                                                  // of open
};

template <class T>
class [[nodiscard]] ConfigReloader {
 public:
  using Snapshot = ConfigSnapshot<T>;

  // Waits for a valid set, from the server or from disk; without one there is no object.
  static Result<ConfigReloader> open(const Client& client, ConfigOptions<T> options) {
    internal::ReloaderHooks hooks{.prefix = std::move(options.prefix),
                                  .cache_file = std::move(options.cache_file),
                                  .build = nullptr,
                                  .on_change = nullptr,
                                  .on_rejected = std::move(options.on_rejected),
                                  .call = std::move(options.call)};
    if (!options.bind) return fail(Code::kInvalidArgument, "ConfigReloader: bind is not set");
    hooks.build = [bind = std::move(options.bind), validate = std::move(options.validate)](
                      const ConfigSet& set, ViewSource source) -> Result<std::shared_ptr<const void>> {
      auto value = bind(set);
      if (!value) return fail(std::move(value.error()));
      if (validate) {
        if (auto valid = validate(*value); !valid) return fail(std::move(valid.error()));
      }
      return std::shared_ptr<const void>(
          std::make_shared<const Snapshot>(Snapshot{std::move(*value), set.revision(), source}));
    };
    if (options.on_change) {
      hooks.on_change = [call = std::move(options.on_change)](const auto& before, const auto& now) {
        call(std::static_pointer_cast<const Snapshot>(before), std::static_pointer_cast<const Snapshot>(now));
      };
    }
    auto reloader = internal::Reloader::open(client, std::move(hooks));
    if (!reloader) return fail(std::move(reloader.error()));
    return ConfigReloader(std::move(*reloader));
  }

  // One consistent revision, never null, never older than the one before; hold it as long as you like.
  std::shared_ptr<const Snapshot> snapshot() const {
    return std::static_pointer_cast<const Snapshot>(reloader_.snapshot());
  }

 private:
  explicit ConfigReloader(internal::Reloader reloader) : reloader_(std::move(reloader)) {}
  internal::Reloader reloader_;
};

}  // namespace v1
}  // namespace conclave
