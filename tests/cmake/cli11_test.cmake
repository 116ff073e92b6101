# cmake -DROOT=<repository> -DWORK=<scratch> -P cli11_test.cmake
# Without an installed CLI11: a download serves, and a forbidden one is named.
include(${CMAKE_CURRENT_LIST_DIR}/stand_in.cmake)
file(WRITE ${WORK}/CMakeLists.txt
  "cmake_minimum_required(VERSION 3.23)
   project(needs_cli11 LANGUAGES CXX)
   include(\"${ROOT}/cmake/cli11.cmake\")
   if(NOT TARGET CLI11::CLI11)
     message(FATAL_ERROR \"no target\")
   endif()")
expect_forbidden(CLI11)
expect_download(CLI11 "add_library(CLI11::CLI11 INTERFACE IMPORTED GLOBAL)")
