# cmake -DROOT=<repository> -DWORK=<scratch> -P nanobind_test.cmake
# Without an installed nanobind: a download serves, and a forbidden one is named.
include(${CMAKE_CURRENT_LIST_DIR}/stand_in.cmake)
file(WRITE ${WORK}/CMakeLists.txt
  "cmake_minimum_required(VERSION 3.23)
   project(needs_nanobind LANGUAGES CXX)
   set(Python_EXECUTABLE ${CMAKE_COMMAND} -E false)
   include(\"${ROOT}/bindings/python/nanobind.cmake\")
   if(NOT COMMAND nanobind_add_module)
     message(FATAL_ERROR \"no function\")
   endif()")
expect_forbidden(nanobind)
expect_download(nanobind "function(nanobind_add_module)\nendfunction()")
