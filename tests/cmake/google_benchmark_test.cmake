# cmake -DROOT=<repository> -DWORK=<scratch> -P google_benchmark_test.cmake
# Without an installed Google Benchmark: a download serves, and with downloads forbidden there is no target, and no error.
include(${CMAKE_CURRENT_LIST_DIR}/stand_in.cmake)
file(WRITE ${WORK}/CMakeLists.txt
  "cmake_minimum_required(VERSION 3.23)
   project(without_benchmark LANGUAGES CXX)
   include(\"${ROOT}/cmake/google_benchmark.cmake\")
   if(TARGET benchmark::benchmark AND NOT TENSORCRAFT_FETCH OR TENSORCRAFT_FETCH AND NOT TARGET benchmark::benchmark)
     message(FATAL_ERROR \"a target that was forbidden, or none\")
   endif()")
configure(without -DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON -DTENSORCRAFT_FETCH=OFF)
if(NOT result EQUAL 0)
  message(SEND_ERROR "what can do without Google Benchmark does not configure without it: ${text}")
endif()
expect_download(benchmark "add_library(benchmark::benchmark INTERFACE IMPORTED GLOBAL)")
