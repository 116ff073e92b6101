# cmake -DROOT=<repository> -DWORK=<scratch> -P google_benchmark_test.cmake
# Without an installed Google Benchmark and with downloads forbidden there is no target, and no error.
file(WRITE ${WORK}/CMakeLists.txt
  "cmake_minimum_required(VERSION 3.23)
   project(without_benchmark LANGUAGES CXX)
   include(\"${ROOT}/cmake/google_benchmark.cmake\")
   if(TARGET benchmark::benchmark)
     message(FATAL_ERROR \"a target\")
   endif()")
execute_process(COMMAND ${CMAKE_COMMAND} -S ${WORK} -B ${WORK}/without -G Ninja
                        -DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON -DTENSORCRAFT_FETCH=OFF
                RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(NOT result EQUAL 0)
  message(SEND_ERROR "what can do without Google Benchmark does not configure without it: ${text}")
endif()
