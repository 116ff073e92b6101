// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

// A tree of draft tokens, on devices and hosts: which of the newest keys of a request its queries
// see, of which there are as many as queries. All see the keys in front of them.
namespace tensorcraft {

struct TreeMask {
  const void* data;         // null: none
  int64_t batch, row, key;  // elements between requests, queries, and keys or words
  int32_t words;            // int32 words of a row, a bit a key; 0: a bool a key

  // Is newest key m seen? The row begins at `at`.
  TC_HOST_DEVICE bool sees(int64_t at, int m) const {
    if (words == 0) return static_cast<const uint8_t*>(data)[at + m * key] != 0;
    if (m / 32 >= words) return false;
    return static_cast<const uint32_t*>(data)[at + m / 32 * key] >> m % 32 & 1;
  }
};

// Says which keys one query sees.
struct TreeRow {
  const TreeMask& mask;
  int64_t at;  // where its row begins
  int newest;  // the first key that the mask speaks of
  TC_HOST_DEVICE bool sees(int key) const { return key < newest || mask.sees(at, key - newest); }
};

// Rows of one request, of which row r is query (first_row + r) / group.
struct TreeRows {
  TreeRow first;  // that of query 0
  int first_row, group;
  TC_HOST_DEVICE int newest() const { return first.newest; }
  TC_HOST_DEVICE TreeRow row(int r) const {
    const int64_t at = first.at + (first_row + r) / group * first.mask.row;
    return {first.mask, at, first.newest};
  }
};

// A kernel whose calls have none takes this.
struct NoTree {
  TC_HOST_DEVICE static int newest() { return 1 << 30; }  // behind all keys
  TC_HOST_DEVICE NoTree row(int) const { return {}; }
  TC_HOST_DEVICE bool sees(int) const { return true; }
};

}  // namespace tensorcraft
