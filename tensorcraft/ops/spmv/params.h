// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/csr.h"
#include "tensorcraft/device/semiring.h"

namespace tensorcraft::kernel::spmv {

// Run time.
struct Params {
  Csr a;
  const void *x, *c;  // c: null if it is not read
  void* out;
  int64_t x_stride, c_stride, out_stride;
  float alpha, beta;
  // Of merge_path: the rows that end before each tile, null if a step finds them, and memory.
  const int64_t* starts;
  void* workspace;
};

// Compile time. group: lanes that share a row.
struct Config {
  int threads = 256;
  int group = 1;
  Semiring semiring = Semiring::product;
};

template <Config C>
using ParamsOf = SemiringParams<Params, C.semiring>;

TC_HOST_DEVICE int64_t tiles(const Params& p) { return merge_tiles(p.a.rows, p.a.stored); }

// The workspace of merge_path: the starts, then what each tile has of the row that goes on behind
// it, then what it has of its first row if that began before.
TC_HOST_DEVICE int64_t* found_starts(const Params& p) { return static_cast<int64_t*>(p.workspace); }
TC_HOST_DEVICE float* tile_tails(const Params& p) {
  return reinterpret_cast<float*>(found_starts(p) + tiles(p) + 1);
}
TC_HOST_DEVICE float* tile_heads(const Params& p) { return tile_tails(p) + tiles(p); }
TC_HOST_DEVICE int64_t workspace_bytes(const Params& p) {
  return (tiles(p) + 1) * int64_t(sizeof(int64_t)) + 2 * tiles(p) * int64_t(sizeof(float));
}

// The merge steps before a tile, and the rows: whatever `starts` holds, inside the matrix.
TC_HOST_DEVICE int64_t steps_before(const Params& p, int64_t tile) {
  const int64_t steps = tile * kMergeTile, all = p.a.rows + p.a.stored;
  return steps < all ? steps : all;
}
TC_HOST_DEVICE int64_t first_row(const Params& p, int64_t tile) {
  const int64_t steps = steps_before(p, tile);
  const int64_t row = p.starts ? p.starts[tile] : found_starts(p)[tile];
  const int64_t low = steps > p.a.stored ? steps - p.a.stored : 0;
  const int64_t high = steps < p.a.rows ? steps : p.a.rows;
  return row < low ? low : row < high ? row : high;
}

}  // namespace tensorcraft::kernel::spmv
