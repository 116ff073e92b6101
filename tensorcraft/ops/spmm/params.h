// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/csr.h"
#include "tensorcraft/device/semiring.h"

namespace tensorcraft::kernel::spmm {

// Run time. Strides of rows, then of columns.
struct Params {
  Csr a;
  const void *x, *c;  // c: null if it is not read
  void* out;
  int64_t columns;  // of x and out
  int64_t x_strides[2], c_strides[2], out_strides[2];
  float alpha, beta;
  void* workspace;   // see below
  int64_t packed;    // elements of a row of x in the workspace; 0: x is read where it is
  int64_t merge_at;  // bytes of the workspace for x
};

// Compile time. vector: neighbouring columns that a lane has.
struct Config {
  int threads = 256;
  int vector = 1;
  Semiring semiring = Semiring::product;
};

template <Config C>
using ParamsOf = SemiringParams<Params, C.semiring>;

// Steps of the merge (csr.h) that a warp of merge_path takes.
inline constexpr int kWarpTile = 256;
TC_HOST_DEVICE int64_t tiles(const Params& p) {
  return div_ceil(p.a.rows + p.a.stored, int64_t(kWarpTile));
}
TC_HOST_DEVICE int64_t steps_before(const Params& p, int64_t tile) {
  const int64_t steps = tile * kWarpTile, all = p.a.rows + p.a.stored;
  return steps < all ? steps : all;
}

// The workspace: x in row-major order, if it is not, and from `merge_at` on how many rows end
// before each tile, then what each tile has of the row that goes on behind it, then what it has of
// its first row if that began before.
TC_HOST_DEVICE int64_t* starts(const Params& p) {
  return reinterpret_cast<int64_t*>(static_cast<char*>(p.workspace) + p.merge_at);
}
TC_HOST_DEVICE float* tile_tails(const Params& p) {
  return reinterpret_cast<float*>(starts(p) + tiles(p) + 1);
}
TC_HOST_DEVICE float* tile_heads(const Params& p) { return tile_tails(p) + tiles(p) * p.columns; }
TC_HOST_DEVICE int64_t merge_bytes(const Params& p) {
  return (tiles(p) + 1) * int64_t(sizeof(int64_t)) +
         2 * tiles(p) * p.columns * int64_t(sizeof(float));
}

// Row `row` of x, whose columns are neighbours.
template <class T>
TC_HOST_DEVICE const T* row_of_x(const Params& p, int64_t row) {
  return p.packed ? static_cast<const T*>(p.workspace) + row * p.packed
                  : static_cast<const T*>(p.x) + row * p.x_strides[0];
}

// Rows and columns of x that a block of pack.cuh turns.
inline constexpr int kPackTile = 32;

// Dense columns that a warp has at a time, and how many such parts there are.
template <Config C>
inline constexpr int kWarpColumns = 32 * C.vector;
TC_HOST_DEVICE int64_t column_parts(const Params& p, int vector) {
  return div_ceil(p.columns, int64_t(32 * vector));
}

}  // namespace tensorcraft::kernel::spmm
