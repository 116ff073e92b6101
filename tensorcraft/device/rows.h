// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft {

// Where the rows of a tensor begin: every axis but the row's own, neighbours merged if their
// strides allow it. Rows count in row-major order of the axes, so the maps of two tensors agree.
struct RowMap {
  static constexpr int kMaxAxes = 8;
  int64_t stride[kMaxAxes];  // elements
  int64_t size[kMaxAxes];
  int32_t axes;

  // Rows along one axis at most need no division: a kernel that knows so says kNested = false, and
  // compiles in less time.
  template <bool kNested = true>
  TC_HOST_DEVICE int64_t offset(int64_t row) const {
    if constexpr (!kNested) return row * stride[0];  // without an axis that is 0
    int64_t at = 0;
#if defined(__CUDA_ARCH__)
#pragma unroll 1  // a division is 100 instructions; unrolled it is most of a kernel's compile time
#endif
    for (int i = axes - 1; i >= 0; --i) {
      at += row % size[i] * stride[i];
      row /= size[i];
    }
    return at;
  }
};

// The parameters of kernels for rows along more than one axis: Params, whose int64_t step[kTensors]
// is the distance of rows along one axis, and the map of each tensor. Kernels for rows along one
// axis take Params alone: a launch with up to 256 bytes of parameters starts 0.3 us sooner than one
// with 700.
template <class Params>
struct Nested : Params {
  RowMap maps[Params::kTensors];
  TC_HOST_DEVICE constexpr void set_map(int tensor, const RowMap& map) {
    this->step[tensor] = map.stride[0];
    maps[tensor] = map;
  }
  TC_HOST_DEVICE constexpr bool is_nested() const {
    for (const RowMap& map : maps)
      if (map.axes > 1) return true;
    return false;
  }
};
// Params with the maps of its tensors, in their order.
template <class Params, class... Maps>
TC_HOST_DEVICE constexpr Nested<Params> with_maps(const Params& params, const Maps&... maps) {
  static_assert(sizeof...(Maps) == Params::kTensors);
  Nested<Params> nested{params, {}};
  int tensor = 0;
  (nested.set_map(tensor++, maps), ...);
  return nested;
}
// The parameters of a kernel with Config C; the host passes Nested<Params> either way.
template <class Params, auto C>
using RowParams = Select<C.nested != 0, Nested<Params>, Params>;
// Params of kernels for rows along one axis are passed as their bytes: members of a parameter of
// their own type are loaded from other base addresses, which takes some kernels more registers.
template <class Params>
struct Flat {
  alignas(Params) unsigned char bytes[sizeof(Params)];
  TC_HOST_DEVICE Flat(const Params& p) { __builtin_memcpy(bytes, &p, sizeof(Params)); }
  TC_HOST_DEVICE operator const Params&() const { return *reinterpret_cast<const Params*>(bytes); }
};
template <class Params>
  requires requires(const Params& p) { p.step[Params::kTensors - 1]; } &&
           (!requires(const Params& p) { p.maps; })
struct Passed<Params> {
  using type = Flat<Params>;
};
// The offset of a row of a tensor.
template <class P>
TC_HOST_DEVICE int64_t row_offset(const P& p, int tensor, int64_t row) {
  if constexpr (requires { p.maps; })
    return p.maps[tensor].offset(row);
  else
    return row * p.step[tensor];
}

}  // namespace tensorcraft
