# cmake -DROOT=<repository> -DWORK=<scratch> -P googletest_test.cmake
# Without an installed GoogleTest: a copy of the sources serves, and a forbidden download is named.
file(WRITE ${WORK}/CMakeLists.txt
  "cmake_minimum_required(VERSION 3.23)
   project(needs_googletest LANGUAGES CXX)
   include(\"${ROOT}/cmake/googletest.cmake\")
   if(NOT TARGET GTest::gtest_main)
     message(FATAL_ERROR \"no target\")
   endif()")
function(configure name)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${WORK} -B ${WORK}/${name} -G Ninja ${ARGN}
                  RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
  set(result "${result}" PARENT_SCOPE)
  set(text "${text}" PARENT_SCOPE)
endfunction()
configure(forbidden -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON -DTENSORCRAFT_FETCH=OFF)
if(result EQUAL 0 OR NOT text MATCHES "TENSORCRAFT_FETCH[ \n]+is[ \n]+OFF")
  message(SEND_ERROR "a forbidden download was not refused by name: ${text}")
endif()
if(EXISTS /usr/src/googletest/CMakeLists.txt)  # stands for the download, which a test must not need
  configure(fetched -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON -DFETCHCONTENT_SOURCE_DIR_GOOGLETEST=/usr/src/googletest)
  if(NOT result EQUAL 0)
    message(SEND_ERROR "sources of GoogleTest do not serve: ${text}")
  endif()
endif()
