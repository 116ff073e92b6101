// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

// Which keys a query sees, in attention over arrays and over pages, on devices and hosts.
namespace tensorcraft {

inline constexpr int kUnlimited = (1 << 30) - 1;  // a side of a window without a limit

// How many keys before and after its own a query sees: 0 to kUnlimited.
struct Window {
  int left = kUnlimited, right = kUnlimited;
};
// The window of a side of -1, which is unlimited; a causal query sees no key after its own.
TC_HOST_DEVICE constexpr Window window_of(int64_t left, int64_t right, bool causal) {
  const auto side = [](int64_t n) { return n < 0 || n > kUnlimited ? kUnlimited : int(n); };
  return {side(left), causal ? 0 : side(right)};
}

// Keys [begin, end); none: begin == end.
struct KeyRange {
  int begin, end;
};

// What a query sees of `keys`, at most 2^30, that stands at key `at`, at least -2^30. A later query
// sees neither an earlier first nor an earlier last one.
TC_HOST_DEVICE constexpr KeyRange keys_of(const Window& window, int keys, int at) {
  int begin = at - window.left, end = at + window.right + 1;
  begin = begin < 0 ? 0 : begin < keys ? begin : keys;
  end = end < keys ? end : keys;
  return {begin, end < begin ? begin : end};
}
// The key at which query i stands: the queries are the newest tokens, the last one at the last key.
TC_HOST_DEVICE constexpr int place_of_query(int queries, int keys, int i) {
  return i + keys - queries;
}

}  // namespace tensorcraft
