# Registry, Discovery, ConfigReloader, Informer and elections. Included before the library is made; their tests are in
# recipes_tests.cmake.
set(CONCLAVE_SDK_RECIPE_SOURCES
  src/cache_file.cc
  src/candidate.cc
  src/candidate_core.cc
  src/config.cc
  src/config_publisher.cc
  src/config_values.cc
  src/fields.cc
  src/discovery.cc
  src/discovery_core.cc
  src/election.cc
  src/leader_view.cc
  src/informer.cc
  src/informer_core.cc
  src/list_watch.cc
  src/ownership.cc
  src/picker.cc
  src/record.cc
  src/registry.cc
  src/registry_core.cc
  src/registry_worker.cc
  src/work_queue.cc
)
