#include "conclave_c/discovery.h"

#include "binding.h"
#include "conclave/discovery.h"
#include "handles.h"

using namespace conclave::c;
using conclave::fail;
using conclave::Status;

namespace {

static_assert(static_cast<int>(conclave::ViewSource::kDisk) == CONCLAVE_FROM_DISK);
static_assert(static_cast<int>(conclave::Balancer::kRandom) == CONCLAVE_RANDOM);

// One instance as C sees it, with what the instance itself does not keep. It does not move.
struct InstanceView {
  explicit InstanceView(const conclave::Instance& of) : host_port(of.host_port()) {
    metadata.reserve(of.metadata.size());
    for (const auto& [key, value] : of.metadata)
      metadata.push_back({borrow(std::string_view(key)), borrow(std::string_view(value))});
    view.id = borrow(std::string_view(of.id));
    view.service = borrow(std::string_view(of.service));
    view.address = borrow(std::string_view(of.address));
    view.host_port = borrow(std::string_view(host_port));
    view.version = borrow(std::string_view(of.version));
    view.zone = borrow(std::string_view(of.zone));
    view.metadata = metadata.data();
    view.metadata_count = metadata.size();
    view.port = of.port;
    view.weight = of.weight;
    view.health = static_cast<conclave_health>(of.health.level);
    view.draining = of.draining;
    view.usable = of.usable();
    view.reason = borrow(std::string_view(of.health.reason));
    view.started_ms = of.started_ms;
  }
  InstanceView(const InstanceView&) = delete;
  InstanceView& operator=(const InstanceView&) = delete;

  const std::string host_port;
  std::vector<conclave_pair> metadata;
  conclave_instance view{};
};

}  // namespace

struct conclave_instances {
  explicit conclave_instances(std::shared_ptr<const conclave::InstanceList> of) : list(std::move(of)) {
    views.reserve(list->instances.size());
    for (const conclave::Instance& instance : list->instances)
      views.push_back(std::make_unique<const InstanceView>(instance));
  }
  const std::shared_ptr<const conclave::InstanceList> list;
  std::vector<std::unique_ptr<const InstanceView>> views;
};

struct conclave_discovery {
  conclave::Discovery discovery;
};

struct conclave_pick_result {
  explicit conclave_pick_result(conclave::Pick of) : pick(std::move(of)), instance(pick.instance()) {}
  conclave::Pick pick;
  const InstanceView instance;
};

conclave_code conclave_discovery_open(conclave_client* client, const conclave_discovery_options* options,
                                      conclave_discovery** discovery, conclave_error* error) {
  if (discovery != nullptr) *discovery = nullptr;
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"client", client}, {"options", options}, {"discovery", discovery}}); !given) return given;
    auto read =
        options_of<conclave_discovery_options>(options, CONCLAVE_DISCOVERY_OPTIONS_INIT, "conclave_discovery_options");
    if (!read) return fail(std::move(read.error()));
    auto balancer = enum_of(read->balancer, conclave::Balancer::kRandom, "balancer");
    if (!balancer) return fail(std::move(balancer.error()));
    conclave::DiscoveryOptions wanted;
    wanted.service = text(read->service);
    wanted.balancer = *balancer;
    wanted.cache_file = text(read->cache_file);
    if (read->on_change != nullptr) {
      wanted.on_change = [call = read->on_change, user = read->user](const auto& now) {
        const conclave_instances instances(now);
        call(&instances, user);
      };
    }
    auto opened = conclave::Discovery::open(client->client, std::move(wanted));
    if (!opened) return fail(std::move(opened.error()));
    *discovery = new conclave_discovery{std::move(*opened)};
    return {};
  });
}

conclave_code conclave_discovery_wait_ready(conclave_discovery* discovery, int64_t timeout_ms, conclave_error* error) {
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"discovery", discovery}}); !given) return given;
    return discovery->discovery.wait_ready(call_of(timeout_ms));
  });
}

conclave_instances* conclave_discovery_snapshot(const conclave_discovery* discovery) {
  return discovery != nullptr ? new conclave_instances(discovery->discovery.snapshot()) : nullptr;
}
void conclave_discovery_free(conclave_discovery* discovery) { delete discovery; }

size_t conclave_instances_size(const conclave_instances* instances) {
  return instances != nullptr ? instances->views.size() : 0;
}
const conclave_instance* conclave_instances_at(const conclave_instances* instances, size_t index) {
  return instances != nullptr && index < instances->views.size() ? &instances->views[index]->view : nullptr;
}
int64_t conclave_instances_revision(const conclave_instances* instances) {
  return instances != nullptr ? number(instances->list->revision) : 0;
}
conclave_view_source conclave_instances_source(const conclave_instances* instances) {
  return instances != nullptr ? static_cast<conclave_view_source>(instances->list->source) : CONCLAVE_FROM_NOWHERE;
}
size_t conclave_instances_unreadable(const conclave_instances* instances) {
  return instances != nullptr ? instances->list->unreadable : 0;
}
void conclave_instances_free(conclave_instances* instances) { delete instances; }

conclave_code conclave_pick(const conclave_discovery* discovery, const conclave_pick_options* options,
                            conclave_pick_result** pick, conclave_error* error) {
  if (pick != nullptr) *pick = nullptr;
  return guarded(error, [&]() -> Status {
    if (auto given = need({{"discovery", discovery}, {"pick", pick}}); !given) return given;
    auto read = options_of<conclave_pick_options>(options, CONCLAVE_PICK_OPTIONS_INIT, "conclave_pick_options");
    if (!read) return fail(std::move(read.error()));
    if (read->exclude_count != 0 && read->exclude == nullptr)
      return fail(conclave::Code::kInvalidArgument, "exclude: must not be NULL when exclude_count is not 0");
    conclave::PickOptions wanted;
    for (std::size_t i = 0; i < read->exclude_count; ++i) wanted.exclude.push_back(text(read->exclude[i]));
    auto picked = discovery->discovery.pick(std::move(wanted));
    if (!picked) return fail(std::move(picked.error()));
    *pick = new conclave_pick_result(std::move(*picked));
    return {};
  });
}

const conclave_instance* conclave_pick_instance(const conclave_pick_result* pick) {
  return pick != nullptr ? &pick->instance.view : nullptr;
}
void conclave_pick_failed(conclave_pick_result* pick) {
  if (pick != nullptr) pick->pick.failed();
}
void conclave_pick_free(conclave_pick_result* pick) { delete pick; }
