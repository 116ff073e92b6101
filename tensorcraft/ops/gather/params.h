// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"
#include "tensorcraft/device/index.h"

namespace tensorcraft::kernel::gather {

// Where one element lies in each of three tensors.
struct Offsets {
  int64_t out, index, x;
};

// The axes of the output with the strides of all tensors; those that all of them merge are one.
// Unused entries are 0.
struct Axes {
  static constexpr int kMax = 8;
  int64_t size[kMax], out_stride[kMax], index_stride[kMax], x_stride[kMax];
  int32_t count;

  // Where element i lies, counted along the last axis first. The outermost axis needs no division.
  template <class Index>
  TC_HOST_DEVICE Offsets offsets(Index i) const {
    Offsets at{0, 0, 0};
#if defined(__CUDA_ARCH__)
#pragma unroll 1  // unrolled, the divisions are most of a kernel's compile time
#endif
    for (int k = count - 1; k > 0; --k) {
      const Index rest = i / Index(size[k]);
      add(at, k, int64_t(i - rest * Index(size[k])));
      i = rest;
    }
    add(at, 0, int64_t(i));
    return at;
  }

 private:
  TC_HOST_DEVICE void add(Offsets& at, int axis, int64_t n) const {
    at.out += n * out_stride[axis];
    at.index += n * index_stride[axis];
    at.x += n * x_stride[axis];
  }
};

// Run time: out[i] = x[i + indices[i] x_step]. Strides of x and out count what is moved at once:
// elements, or units of C.vector of them. Indices are broadcast: their strides are 0 along
// the axes that they lack.
struct Params {
  const void* x;
  const void* indices;
  void* out;
  Axes axes;
  int64_t count;              // elements or units of out
  int64_t axis_size, x_step;  // of the axis that is indexed
  uint64_t missing;           // the bits if an index is outside the axis, repeated
};

// Compile time.
struct Config {
  int threads = 256;
  int vector = 1;   // elements that are moved at once
  int vectors = 1;  // such accesses that a thread has in flight
  int wide = 0;     // 32 bits do not count the elements
};

template <Config C>
using Index = Count<C.wide != 0>;

}  // namespace tensorcraft::kernel::gather
