// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"
#include "tensorcraft/device/index.h"

namespace tensorcraft::kernel::pad {

// Where one element of the output lies in both tensors; `x` means something if it is inside.
struct Place {
  int64_t out, x;
  bool is_inside;
};

// The axes of the output, of which x fills `inside` elements behind the first `before`. There is
// one at least. Unused entries are 0.
struct Axes {
  static constexpr int kMax = 8;
  int64_t size[kMax], before[kMax], inside[kMax], out_stride[kMax], x_stride[kMax];
  int32_t count;

  // The place of element i of the first `axes` axes, counted along the last of them first. The
  // outermost axis needs no division.
  template <class Index>
  TC_HOST_DEVICE Place place(Index i, int axes) const {
    Place at{0, 0, true};
#if defined(__CUDA_ARCH__)
#pragma unroll 1  // unrolled, the divisions are most of a kernel's compile time
#endif
    for (int k = axes - 1; k > 0; --k) {
      const Index rest = i / Index(size[k]);
      add(at, k, int64_t(i - rest * Index(size[k])));
      i = rest;
    }
    if (axes > 0) add(at, 0, int64_t(i));
    return at;
  }

 private:
  TC_HOST_DEVICE void add(Place& at, int axis, int64_t n) const {
    at.out += n * out_stride[axis];
    at.x += (n - before[axis]) * x_stride[axis];
    at.is_inside = at.is_inside && uint64_t(n - before[axis]) < uint64_t(inside[axis]);
  }
};

// Run time: out is x with a margin of one value. Strides count elements.
struct Params {
  const void* x;
  void* out;
  Axes axes;
  int64_t count;   // elements of out
  uint64_t value;  // the bits of one element
};

// Compile time.
struct Config {
  int threads = 256;
  int vectors = 1;  // vectorized: units of 16 bytes that a thread has in flight
  int wide = 0;     // 32 bits do not count the elements
};

template <Config C>
using Index = Count<C.wide != 0>;

}  // namespace tensorcraft::kernel::pad
