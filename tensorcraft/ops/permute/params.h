// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"
#include "tensorcraft/device/divider.h"
#include "tensorcraft/device/index.h"

namespace tensorcraft::kernel::permute {

// Where one element lies in each of two tensors.
struct Offsets {
  int64_t in, out;
};

// The axes that two tensors of one shape have in common, neighbours of the output last; those that
// both strides merge are one. Unused entries are 0.
struct Axes {
  static constexpr int kMax = 8;
  int32_t count;
  int64_t size[kMax], in_stride[kMax], out_stride[kMax];

  // Where element i lies, counted along the last axis first. The outermost axis needs no division.
  template <class Index>
  TC_HOST_DEVICE Offsets offsets(Index i) const {
    Offsets at{0, 0};
#if defined(__CUDA_ARCH__)
#pragma unroll 1  // unrolled, the divisions are most of a kernel's compile time
#endif
    for (int k = count - 1; k > 0; --k) {
      const Index rest = i / Index(size[k]);
      const auto here = int64_t(i - rest * Index(size[k]));
      at.in += here * in_stride[k];
      at.out += here * out_stride[k];
      i = rest;
    }
    return {at.in + int64_t(i) * in_stride[0], at.out + int64_t(i) * out_stride[0]};
  }
};

// Run time: out = in, element by element. Strides count what a rung moves at once: elements, and in
// `vectorized` units of C.vector_in of them.
struct Params {
  const void* in;
  void* out;
  int64_t count;  // elements or units
  int64_t tail;   // vectorized: bytes after the last unit
  // tiled: out[col * out_step + row] = in[row * in_step + col]
  int64_t rows, cols, in_step, out_step;
  // Blocks take the tiles of a matrix by bands of so many columns of them; the last one has fewer.
  Divider by_matrix, by_band, by_width, by_last_width;  // what has so many tiles
  uint32_t last_band;                                   // its index
  Axes axes;                                            // tiled: without the two of a tile
};

// Compile time.
struct Config {
  int threads = 256;
  int vector_in = 1;   // elements of one access to the input
  int vector_out = 1;  // and to the output
  int vectors = 1;     // vectorized: accesses that a thread has in flight
  int tile = 0;        // tiled: elements in each direction
  int wide = 0;        // 32 bits do not count the elements
};

template <Config C>
using Index = Count<C.wide != 0>;

}  // namespace tensorcraft::kernel::permute
