# How every folder of ours declares its library, its programs, tests and fuzzers.
#
#   conclave_library(wal SOURCES wal.cc segment.cc DEPS base)       -> target conclave_wal
#   conclave_test(wal_test SOURCES wal_test.cc DEPS wal [LABELS threads])
#   conclave_program(conclave SOURCES main.cc DEPS member rpc)      -> build/bin/conclave
#   conclave_fuzzer(record_fuzz SOURCES record_fuzz.cc DEPS wal)    (clang with CONCLAVE_FUZZ=ON only)
#
# DEPS are names of our libraries; LIBS are targets or libraries from outside. Test labels: `threads` (also run under
# TSan), `slow` (over 10 s), `process` (starts the real server), `sim`.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

add_library(conclave_options INTERFACE)
target_compile_options(conclave_options INTERFACE -Wall -Wextra -Wpedantic -Werror)
target_include_directories(conclave_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/server)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees an overlapping memcpy in every "text" + std::string (gcc.gnu.org/PR105651); GCC 13 does not.
  target_compile_options(conclave_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(conclave_options INTERFACE -Wthread-safety)
endif()
if(CONCLAVE_SANITIZE)
  add_compile_options(-fsanitize=${CONCLAVE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${CONCLAVE_SANITIZE})
endif()
if(CONCLAVE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
endif()

# Builds the tests with the label `threads`, the ones that TSan runs (.ci/run).
add_custom_target(threads_tests)

function(conclave_deps target deps libs)
  foreach(dep ${deps})
    target_link_libraries(${target} PUBLIC conclave_${dep})
  endforeach()
  target_link_libraries(${target} PUBLIC ${libs} Threads::Threads)
endfunction()

function(conclave_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  add_library(conclave_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(conclave_${name} PUBLIC conclave_options)
  conclave_deps(conclave_${name} "${ARG_DEPS}" "${ARG_LIBS}")
endfunction()

function(conclave_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE conclave_options)
  foreach(dep ${ARG_DEPS})
    target_link_libraries(${name} PRIVATE conclave_${dep})
  endforeach()
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} Threads::Threads)
endfunction()

# Without CONCLAVE_TESTS the target exists, so that its folder may go on about it, but is neither built nor run.
function(conclave_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LIBS;LABELS;ARGS" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE conclave_options GTest::gmock GTest::gtest_main)
  foreach(dep ${ARG_DEPS})
    target_link_libraries(${name} PRIVATE conclave_${dep})
  endforeach()
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} Threads::Threads)
  if(NOT CONCLAVE_TESTS)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(CONCLAVE_SANITIZE OR CONCLAVE_FUZZ)
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")  # several times slower
  endif()
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
  if("threads" IN_LIST ARG_LABELS)
    add_dependencies(threads_tests ${name})
  endif()
endfunction()

function(conclave_fuzzer name)
  if(NOT CONCLAVE_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name} PRIVATE conclave_options)
  foreach(dep ${ARG_DEPS})
    target_link_libraries(${name} PRIVATE conclave_${dep})
  endforeach()
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} Threads::Threads)
  # Some seconds of each fuzzer in CI; a crash fails the run and leaves the input beside it.
  add_test(NAME ${name} COMMAND ${name} -max_total_time=20 -max_len=65536 -rss_limit_mb=2048 -print_final_stats=1)
  set_tests_properties(${name} PROPERTIES TIMEOUT 120 LABELS fuzz)
endfunction()
