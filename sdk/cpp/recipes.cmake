# Registry, Discovery and ConfigReloader. Included before the library is made; their tests are in recipes_tests.cmake.
set(CONCLAVE_SDK_RECIPE_SOURCES
  src/config.cc
  src/fields.cc
  src/prefix_view.cc
  src/discovery.cc
  src/discovery_core.cc
  src/disk_copy.cc
  src/picker.cc
  src/range_view.cc
  src/record.cc
  src/registry.cc
  src/registry_core.cc
  src/registry_worker.cc
  src/set_file.cc
)
