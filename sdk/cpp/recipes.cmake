# Registry, Discovery and ConfigReloader. Included before the library is made; their tests are in recipes_tests.cmake.
set(CONCLAVE_SDK_RECIPE_SOURCES
  src/record.cc
  src/registry.cc
  src/registry_core.cc
  src/registry_worker.cc
)
