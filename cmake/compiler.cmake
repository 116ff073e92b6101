# -fno-trapping-math and -fno-math-errno change no value; without them no select or square root
# becomes vector code.
set(TENSORCRAFT_FLOAT_OPTIONS -fno-trapping-math -fno-math-errno)

# Warnings, and the probe that accepts or refuses the compiler with a named reason.
set(TENSORCRAFT_WARNINGS -Wall -Wextra -Werror -Wno-missing-field-initializers)
# For code that runs for a moment, when compiling it takes longer: a quarter less than -O1 with GCC 12.
set(TENSORCRAFT_QUICK_OPTIONS $<$<CONFIG:Release>:-Og>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 finds faults of these kinds in correct code.
  list(APPEND TENSORCRAFT_WARNINGS -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
  # And of this one in instrumented code, in device text if debug information is written too, and with -Og.
  if(CMAKE_CXX_FLAGS MATCHES "sanitize" OR CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
    list(APPEND TENSORCRAFT_WARNINGS -Wno-maybe-uninitialized)
  endif()
  list(APPEND TENSORCRAFT_QUICK_OPTIONS $<$<CONFIG:Release>:-Wno-maybe-uninitialized>)
else()
  list(APPEND TENSORCRAFT_WARNINGS -Wno-deprecated-declarations)  # libstdc++ 12 calls what it declares deprecated
endif()

include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_FLAGS "${CMAKE_CXX20_STANDARD_COMPILE_OPTION}")
check_cxx_source_compiles("
#include <concepts>
#include <ranges>
#include <source_location>
template <std::integral T> T next(T x) { return x + 1; }
int main() {
  int sum = 0;
  for (int i : std::views::iota(0, 3)) sum += next(i);
  return sum + int(std::source_location::current().line());
}" TENSORCRAFT_COMPILER_HAS_CXX20)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT TENSORCRAFT_COMPILER_HAS_CXX20)
  message(FATAL_ERROR
    "TensorCraft needs a C++20 compiler with concepts, ranges and std::source_location; "
    "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} lacks one of them. "
    "GCC 12, Clang 16 with a recent libstdc++, or newer work.")
endif()
