#include "conclave/config_publisher.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "core.h"
#include "retry.h"

namespace conclave {
inline namespace v1 {

namespace {

constexpr std::chrono::milliseconds kConflictPauseMax{100};  // between two attempts to delete the others

Error no_prefix() {
  return {
      .code = Code::kInvalidArgument, .outcome = Outcome::kNeverWorks, .message = "ConfigPublisher: prefix is not set"};
}

}  // namespace

ConfigPublisher::ConfigPublisher(const Client& client, PublisherOptions options)
    : client_(client), options_(std::move(options)) {}

Result<ConfigSet> ConfigPublisher::read(GetOptions options) const {
  const std::string& prefix = options_.prefix;
  if (prefix.empty()) return fail(no_prefix());
  const auto found = client_.range({.key = prefix,
                                    .prefix = true,
                                    .revision = options.revision,
                                    .serializable = options.serializable,
                                    .call = std::move(options.call)});
  if (!found) return fail(found.error());
  ConfigMap values;
  for (const KeyValue& kv : found->kvs) values.emplace(kv.key.substr(prefix.size()), kv.value);
  return ConfigSet(std::move(values), options.revision == Revision{} ? found->revision : options.revision);
}

// What the compares hold against: nobody creates a key between the look at what there is and the deletion of the others
// (or it is looked again); with `based_on`, nobody changes anything. A compare sees no deletion but of a key it names.
Result<Published> ConfigPublisher::publish(const ConfigMap& values, PublishOptions options) const {
  const std::string& prefix = options_.prefix;
  if (prefix.empty()) return fail(no_prefix());
  if (values.empty() && !options.remove_others)
    return fail(Code::kInvalidArgument, prefix + ": the set is empty and deletes nothing");
  if (options.based_on && number(*options.based_on) <= 0)
    return fail(Code::kInvalidArgument, prefix + ": based_on is not a revision");
  const auto too_many = [&](const std::string& what) {
    return fail(Code::kInvalidArgument, prefix + ": " + what + "; one transaction takes " +
                                            std::to_string(options_.operations_max) + " operations");
  };
  if (values.size() > options_.operations_max) return too_many(std::to_string(values.size()) + " keys");
  const auto deadline = internal::deadline_of(options.call, internal::Access::core(client_).call_timeout());
  internal::Backoff backoff(kConflictPauseMax);
  for (int attempts = 1;; ++attempts) {
    RangeResult there;
    if (options.remove_others || options.based_on) {
      auto found = client_.range({.key = prefix,
                                  .prefix = true,
                                  .revision = options.based_on.value_or(Revision{}),
                                  .keys_only = true,
                                  .call = internal::rest_of(deadline, options.call.stop)});
      if (!found) return fail(std::move(found.error()));
      there = std::move(*found);
    }
    Txn txn;
    if (options.based_on) {
      if (there.kvs.size() >= options_.operations_max)
        return too_many(std::to_string(there.kvs.size()) + " keys and the prefix to compare with revision " +
                        std::to_string(number(*options.based_on)));
      const Revision next{number(*options.based_on) + 1};
      txn.when(compare::mod_revision(prefix).all_with_prefix() < next);
      for (const KeyValue& kv : there.kvs) txn.when(compare::exists(kv.key));
    } else if (options.remove_others) {
      const Revision next{number(there.revision) + 1};
      txn.when(compare::create_revision(prefix).all_with_prefix() < next);
    }
    for (const auto& [name, value] : values) txn.then(op::put(prefix + name, value));
    if (options.remove_others) {
      for (const KeyValue& kv : there.kvs)
        if (!values.contains(kv.key.substr(prefix.size()))) txn.then(op::del(kv.key));
    }
    if (txn.then_ops().size() > options_.operations_max)
      return too_many(std::to_string(values.size()) + " keys and " +
                      std::to_string(txn.then_ops().size() - values.size()) + " to delete");
    const auto result = client_.commit(txn, internal::rest_of(deadline, options.call.stop));
    if (!result) return fail(result.error());
    if (result->succeeded) {
      Published published{.revision = result->revision, .stored = values.size()};
      for (const OpResult& one : result->results)
        if (one.del() != nullptr) published.deleted += static_cast<std::size_t>(one.del()->deleted);
      return published;
    }
    if (options.based_on)
      return fail(Code::kAborted, prefix + ": changed since revision " + std::to_string(number(*options.based_on)) +
                                      "; nothing was written");
    internal::pause_until(std::min(deadline, internal::after(backoff.next())), options.call.stop);
    if (options.call.stop.stop_requested()) return fail(Code::kCancelled, "stopped by the caller");
    if (internal::BootClock::now() >= deadline)
      return fail(Code::kDeadlineExceeded, prefix + ": others created keys during " + std::to_string(attempts) +
                                               " attempts; nothing was written");
  }
}

Result<Published> ConfigPublisher::restore(Revision revision, PublishOptions options) const {
  if (number(revision) <= 0) return fail(Code::kInvalidArgument, options_.prefix + ": restore: not a revision");
  const auto deadline = internal::deadline_of(options.call, internal::Access::core(client_).call_timeout());
  const auto then = read({.revision = revision, .call = internal::rest_of(deadline, options.call.stop)});
  if (!then) return fail(then.error());
  if (then->values().empty())
    return fail(Code::kNotFound, options_.prefix + ": nothing at revision " + std::to_string(number(revision)));
  options.remove_others = true;
  options.call = internal::rest_of(deadline, options.call.stop);
  return publish(then->values(), std::move(options));
}

}  // namespace v1
}  // namespace conclave
