# What a program needs beside conclave::sdk: tl::expected's header (libexpected-dev) and cpprestsdk to link with.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(OpenSSL)
find_dependency(cpprestsdk)
include(${CMAKE_CURRENT_LIST_DIR}/conclave-targets.cmake)
