// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"
#include "tensorcraft/device/divider.h"

namespace tensorcraft::kernel::packed_gemm {

// Run time: out (m, n) = a (m, k) W^T + bias. Strides are in elements, steps of rows of codes in
// bytes and of scales in elements.
struct Params {
  const void* a;
  const uint8_t* codes;
  const void* scales;
  const uint8_t* zeros;  // codes that mean 0; null: 8
  const void* offsets;   // what code 0 means, of the dtype of scales; null: zeros say it
  const void* bias;      // null: none
  void* out;
  int64_t m, n, k, group;
  int64_t groups;    // of a row
  Divider by_group;  // divides what is below 2^31 by group
  int64_t a_strides[2], out_strides[2];
  float tensor_scale;
};

// What zeros are: codes that mean 0, or what code 0 means, the offsets of Params.
enum class Zeros : int { codes, offsets };

// Groups of int4 in a step of 128 along k: it lies in one; it has four, whose scales are side by
// side; or each 32 codes look theirs up.
enum class Groups : int { one, four, any };

// tokens: rows of a that a block takes. row_tiles: 16 rows of W each, of a warp. parts: of k, each
// of a warp; the other warps have other rows.
struct Config {
  int threads = 256;
  int tokens = 8;
  int row_tiles = 1;
  int parts = 8;
  Groups groups = Groups::any;
  Zeros zeros = Zeros::codes;
};
TC_HOST_DEVICE constexpr int rows_of_block(const Config& c) {
  return c.threads / 32 / c.parts * c.row_tiles * 16;
}

}  // namespace tensorcraft::kernel::packed_gemm
