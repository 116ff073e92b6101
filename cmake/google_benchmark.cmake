# Google Benchmark, the runner of `tensorcraft bench`: the installed package first, else a pinned version, unless
# TENSORCRAFT_FETCH forbids downloads. Without it everything is built, and `bench` says that it has no runner.
option(TENSORCRAFT_FETCH "Download what the tests and the command need and the system lacks" ON)
find_package(benchmark CONFIG QUIET)
if(NOT benchmark_FOUND AND TENSORCRAFT_FETCH AND NOT SKBUILD)
  include(FetchContent)
  set(BENCHMARK_ENABLE_TESTING OFF)
  set(BENCHMARK_ENABLE_INSTALL OFF)
  set(BENCHMARK_ENABLE_GTEST_TESTS OFF)
  set(BENCHMARK_ENABLE_WERROR OFF)
  FetchContent_Declare(benchmark
    URL https://github.com/google/benchmark/archive/refs/tags/v1.8.3.tar.gz
    URL_HASH SHA256=6bc180a57d23d4d9515519f92b0c83d61b05b5bab188961f36ac7b06b0d9e9ce)
  FetchContent_MakeAvailable(benchmark)
endif()
message(STATUS "TensorCraft: Google Benchmark ${benchmark_FOUND} ${benchmark_DIR}")
