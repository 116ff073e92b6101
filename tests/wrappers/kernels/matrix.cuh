// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/ldmatrix.cuh"
#include "tensorcraft/device/ptx/movmatrix.cuh"
#include "tensorcraft/device/ptx/stmatrix.cuh"
#include "tests/wrappers/kernels/params.h"

namespace tensorcraft::test {

struct MatrixShared {
  alignas(16) uint32_t rows[32][4];
};

// in: 32 rows of 16 bytes, and after them the row that each lane names; out: a lane's registers.
TC_DEVICE const uint32_t* fill_rows(const Params& p) {
  auto& shared = static_shared<MatrixShared>();
  for (int i = 0; i < 4; ++i) shared.rows[threadIdx.x][i] = block_in(p)[threadIdx.x * 4 + i];
  __syncwarp();
  return shared.rows[block_in(p)[128 + threadIdx.x]];
}
TC_DEVICE void ldmatrix_x1(const Params& p) {
  uint32_t to[1];
  ptx::ldmatrix_x1(to, fill_rows(p));
  for (int i = 0; i < 1; ++i) block_out(p)[threadIdx.x * 1 + i] = to[i];
}
TC_DEVICE void ldmatrix_x1_trans(const Params& p) {
  uint32_t to[1];
  ptx::ldmatrix_x1_trans(to, fill_rows(p));
  for (int i = 0; i < 1; ++i) block_out(p)[threadIdx.x * 1 + i] = to[i];
}
TC_DEVICE void ldmatrix_x2(const Params& p) {
  uint32_t to[2];
  ptx::ldmatrix_x2(to, fill_rows(p));
  for (int i = 0; i < 2; ++i) block_out(p)[threadIdx.x * 2 + i] = to[i];
}
TC_DEVICE void ldmatrix_x2_trans(const Params& p) {
  uint32_t to[2];
  ptx::ldmatrix_x2_trans(to, fill_rows(p));
  for (int i = 0; i < 2; ++i) block_out(p)[threadIdx.x * 2 + i] = to[i];
}
TC_DEVICE void ldmatrix_x4(const Params& p) {
  uint32_t to[4];
  ptx::ldmatrix_x4(to, fill_rows(p));
  for (int i = 0; i < 4; ++i) block_out(p)[threadIdx.x * 4 + i] = to[i];
}
TC_DEVICE void ldmatrix_x4_trans(const Params& p) {
  uint32_t to[4];
  ptx::ldmatrix_x4_trans(to, fill_rows(p));
  for (int i = 0; i < 4; ++i) block_out(p)[threadIdx.x * 4 + i] = to[i];
}

// in: the row that each lane names, then a lane's registers, 4 each; out: the 32 rows, first zero.
TC_DEVICE uint32_t* clear_rows(const Params& p, uint32_t* from, int count) {
  auto& shared = static_shared<MatrixShared>();
  for (int i = 0; i < 4; ++i) shared.rows[threadIdx.x][i] = 0;
  for (int i = 0; i < count; ++i) from[i] = block_in(p)[32 + threadIdx.x * 4 + i];
  __syncwarp();
  return shared.rows[block_in(p)[threadIdx.x]];
}
TC_DEVICE void copy_rows(uint32_t* out) {
  __syncwarp();
  auto& shared = static_shared<MatrixShared>();
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = shared.rows[threadIdx.x][i];
}
TC_DEVICE void stmatrix_x1(const Params& p) {
  uint32_t from[1];
  uint32_t* row = clear_rows(p, from, 1);
  ptx::stmatrix_x1(row, from);
  copy_rows(block_out(p));
}
TC_DEVICE void stmatrix_x1_trans(const Params& p) {
  uint32_t from[1];
  uint32_t* row = clear_rows(p, from, 1);
  ptx::stmatrix_x1_trans(row, from);
  copy_rows(block_out(p));
}
TC_DEVICE void stmatrix_x2(const Params& p) {
  uint32_t from[2];
  uint32_t* row = clear_rows(p, from, 2);
  ptx::stmatrix_x2(row, from);
  copy_rows(block_out(p));
}
TC_DEVICE void stmatrix_x2_trans(const Params& p) {
  uint32_t from[2];
  uint32_t* row = clear_rows(p, from, 2);
  ptx::stmatrix_x2_trans(row, from);
  copy_rows(block_out(p));
}
TC_DEVICE void stmatrix_x4(const Params& p) {
  uint32_t from[4];
  uint32_t* row = clear_rows(p, from, 4);
  ptx::stmatrix_x4(row, from);
  copy_rows(block_out(p));
}
TC_DEVICE void stmatrix_x4_trans(const Params& p) {
  uint32_t from[4];
  uint32_t* row = clear_rows(p, from, 4);
  ptx::stmatrix_x4_trans(row, from);
  copy_rows(block_out(p));
}

TC_DEVICE void movmatrix(const Params& p) {
  block_out(p)[threadIdx.x] = ptx::movmatrix_trans(block_in(p)[threadIdx.x]);
}

}  // namespace tensorcraft::test
