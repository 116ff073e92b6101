# Headers of the standard library are half of what the compiler reads of a typical file. A build that
# keeps results in ccache does without: a precompiled header would be part of every key, and such a
# build also notices a file that forgets an include.
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()

set(TENSORCRAFT_STANDARD_HEADERS
    <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <cstring> <deque> <filesystem> <functional> <limits> <map>
    <memory> <mutex> <optional> <ostream> <set> <span> <string> <string_view> <thread> <unordered_map> <utility> <variant>
    <vector>)
