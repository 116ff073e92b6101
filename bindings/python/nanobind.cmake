# nanobind: the installed package first, that of Python's packages too, else a pinned version, unless TENSORCRAFT_FETCH forbids
# downloads.
option(TENSORCRAFT_FETCH "Download what the build needs and the system lacks" ON)
if(NOT nanobind_ROOT)
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
                  OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT ERROR_QUIET)
endif()
find_package(nanobind CONFIG QUIET)
if(NOT nanobind_FOUND)
  if(NOT TENSORCRAFT_FETCH)
    message(FATAL_ERROR
      "The Python package needs nanobind, which is not installed, and TENSORCRAFT_FETCH is OFF. "
      "Install it (python3 -m pip install nanobind), or set TENSORCRAFT_FETCH=ON.")
  endif()
  include(FetchContent)
  FetchContent_Declare(nanobind GIT_REPOSITORY https://github.com/wjakob/nanobind GIT_TAG v3.1.0 GIT_SHALLOW ON)
  FetchContent_MakeAvailable(nanobind)
endif()
