#include "conclave/registry.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "random.h"
#include "record.h"
#include "registry_core.h"

namespace conclave {
inline namespace v1 {

namespace {

constexpr std::chrono::seconds kTtlMin{1};
constexpr std::chrono::seconds kTtlMax{86400};
constexpr std::chrono::milliseconds kEveryMin{10};
constexpr std::size_t kHostMax = 80;  // leaves room for "-<pid>-<8 hex digits>"

tl::unexpected<Error> bad(std::string why) { return fail(Code::kInvalidArgument, std::move(why)); }

std::string default_id() {
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') std::snprintf(host, sizeof host, "host");
  std::string name(host);
  name.resize(std::min(name.size(), kHostMax));
  std::ranges::replace_if(
      name, [](char c) { return !internal::valid_name(std::string(1, c)) && c != '.' && c != '-'; }, '-');
  const std::string id = name + "-" + std::to_string(::getpid()) + "-" + internal::random_hex(8);
  return internal::valid_name(id) ? id : "host" + id;
}

Status check_texts(const ServiceOptions& options) {
  for (const auto& [name, text] : {std::pair{"address", &options.address}, std::pair{"version", &options.version},
                                   std::pair{"zone", &options.zone}})
    if (!internal::valid_utf8(*text)) return bad(std::string(name) + ": not UTF-8");
  for (const auto& [name, value] : options.metadata)
    if (!internal::valid_utf8(name) || !internal::valid_utf8(value)) return bad("metadata: not UTF-8");
  return {};
}

Status check(const ServiceOptions& options) {
  if (!internal::valid_name(options.service))
    return bad("service: '" + options.service + "' is not like [A-Za-z0-9][A-Za-z0-9._-]{0,127}");
  if (!internal::valid_name(options.id))
    return bad("id: '" + options.id + "' is not like [A-Za-z0-9][A-Za-z0-9._-]{0,127}");
  if (options.address.empty()) return bad("address: missing");
  if (options.address.find_first_of("[]/ \t\r\n") != std::string::npos)
    return bad("address: '" + options.address + "' is not a host name or a bare IP address");
  if (options.port == 0) return bad("port: missing");
  if (options.weight < 0 || options.weight > internal::kWeightMax)
    return bad("weight: 0 to " + std::to_string(internal::kWeightMax));
  if (options.health.check) {
    if (options.health.every < kEveryMin)
      return bad("health.every: at least " + std::to_string(kEveryMin.count()) + " ms");
    if (options.health.fall < 1) return bad("health.fall: at least 1");
    if (options.health.rise < 1) return bad("health.rise: at least 1");
  }
  if (auto texts = check_texts(options); !texts) return texts;
  std::size_t bytes = options.address.size() + options.version.size() + options.zone.size();
  for (const auto& [name, value] : options.metadata) bytes += name.size() + value.size();
  if (bytes > internal::kRecordBytesMax)
    return bad("metadata: the record has more than " + std::to_string(internal::kRecordBytesMax) + " bytes");
  return {};
}

}  // namespace

class Registration::Impl {
 public:
  Impl(std::shared_ptr<internal::Handle> handle, std::shared_ptr<internal::RegistryCore> registry,
       internal::RegistrationPtr registration)
      : handle_(std::move(handle)), registry(std::move(registry)), registration(std::move(registration)) {}
  ~Impl() { registry->forget(registration); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

 private:
  const std::shared_ptr<internal::Handle> handle_;  // ends last

 public:
  const std::shared_ptr<internal::RegistryCore> registry;
  const internal::RegistrationPtr registration;
};

Registration::Registration(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Registration::Registration(Registration&&) noexcept = default;
Registration& Registration::operator=(Registration&&) noexcept = default;
Registration::~Registration() = default;

const std::string& Registration::id() const { return impl_->registration->id; }
RegistrationState Registration::state() const { return impl_->registry->state(impl_->registration); }
Status Registration::wait_ready(CallOptions call) const {
  return impl_->registry->wait_ready(impl_->registration, call);
}
Status Registration::drain(DrainOptions options) { return impl_->registry->drain(impl_->registration, options); }

class Registry::Impl {
 public:
  Impl(std::shared_ptr<internal::Handle> client, RegistryOptions given)
      : handle(std::move(client)),
        options(given),
        registry(std::make_shared<internal::RegistryCore>(handle->core(), options.ttl)) {
    registry->start();
    closer_ = handle->core()->on_close([registry = registry] { registry->end("the client was closed"); });
  }
  ~Impl() {
    handle->core()->forget_close(closer_);
    registry->end("the registry was closed");
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const std::shared_ptr<internal::Handle> handle;
  const RegistryOptions options;
  const std::shared_ptr<internal::RegistryCore> registry;

 private:
  std::uint64_t closer_ = 0;
};

Registry::Registry(const Client& client, RegistryOptions options)
    : impl_(std::make_shared<Impl>(internal::Access::handle(client), options)) {}
Registry::Registry(Registry&&) noexcept = default;
Registry& Registry::operator=(Registry&&) noexcept = default;
Registry::~Registry() = default;

Result<Registration> Registry::add(ServiceOptions options) {
  if (impl_->options.ttl < kTtlMin || impl_->options.ttl > kTtlMax)
    return bad("ttl: 1 s to " + std::to_string(kTtlMax.count()) + " s");
  if (options.id.empty()) options.id = default_id();
  if (auto checked = check(options); !checked) return fail(std::move(checked.error()));
  auto registration = impl_->registry->add(std::move(options));
  if (!registration) return fail(std::move(registration.error()));
  return Registration(std::make_shared<Registration::Impl>(impl_->handle, impl_->registry, std::move(*registration)));
}

}  // namespace v1
}  // namespace conclave
