# Headers of the standard library are half of what the compiler reads of a typical file.
set(TENSORCRAFT_STANDARD_HEADERS
    <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <cstring> <deque> <filesystem> <functional> <limits> <map>
    <memory> <mutex> <optional> <ostream> <set> <span> <sstream> <string> <string_view> <thread> <unordered_map> <utility>
    <variant> <vector>)
