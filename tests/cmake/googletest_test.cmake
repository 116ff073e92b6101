# cmake -DROOT=<repository> -DWORK=<scratch> -P googletest_test.cmake
# Without an installed GoogleTest: a copy of the sources serves, and a forbidden download is named.
include(${CMAKE_CURRENT_LIST_DIR}/stand_in.cmake)
file(WRITE ${WORK}/CMakeLists.txt
  "cmake_minimum_required(VERSION 3.23)
   project(needs_googletest LANGUAGES CXX)
   include(\"${ROOT}/cmake/googletest.cmake\")
   if(NOT TARGET GTest::gtest_main)
     message(FATAL_ERROR \"no target\")
   endif()")
expect_forbidden(GTest)
if(EXISTS /usr/src/googletest/CMakeLists.txt)  # stands for the download, which a test must not need
  configure(fetched -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON -DFETCHCONTENT_SOURCE_DIR_GOOGLETEST=/usr/src/googletest)
  if(NOT result EQUAL 0)
    message(SEND_ERROR "sources of GoogleTest do not serve: ${text}")
  endif()
endif()
