# GoogleTest: the installed package first, else a pinned version, unless TENSORCRAFT_FETCH forbids downloads.
option(TENSORCRAFT_FETCH "Download what the tests and the command need and the system lacks" ON)
find_package(GTest QUIET)
if(NOT GTest_FOUND)
  if(NOT TENSORCRAFT_FETCH)
    message(FATAL_ERROR
      "The tests need GoogleTest, which is not installed, and TENSORCRAFT_FETCH is OFF. "
      "Install it (libgtest-dev), set TENSORCRAFT_FETCH=ON, or leave the tests out with TENSORCRAFT_BUILD_TESTS=OFF.")
  endif()
  include(FetchContent)
  FetchContent_Declare(googletest
    URL https://github.com/google/googletest/archive/refs/tags/v1.14.0.tar.gz
    URL_HASH SHA256=8ad598c73ad796e0d8280b082cebd82a630d73e73cd3c70057938a6501bba5d7)
  set(INSTALL_GTEST OFF)
  FetchContent_MakeAvailable(googletest)
endif()
