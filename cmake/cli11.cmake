# CLI11: the installed package first, else a pinned version, unless TENSORCRAFT_FETCH forbids downloads. Only the command uses it.
option(TENSORCRAFT_FETCH "Download what the tests and the command need and the system lacks" ON)
find_package(CLI11 CONFIG QUIET)
if(NOT CLI11_FOUND)
  if(NOT TENSORCRAFT_FETCH)
    message(FATAL_ERROR
      "The command needs CLI11, which is not installed, and TENSORCRAFT_FETCH is OFF. "
      "Install it (libcli11-dev), set TENSORCRAFT_FETCH=ON, or leave the command out with TENSORCRAFT_BUILD_COMMAND=OFF.")
  endif()
  include(FetchContent)
  FetchContent_Declare(CLI11
    URL https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.6.1.tar.gz
    URL_HASH SHA256=377691f3fac2b340f12a2f79f523c780564578ba3d6eaf5238e9f35895d5ba95)
  set(CLI11_INSTALL OFF)
  set(CLI11_BUILD_TESTS OFF)
  set(CLI11_BUILD_EXAMPLES OFF)
  set(CLI11_BUILD_DOCS OFF)
  FetchContent_MakeAvailable(CLI11)
endif()
