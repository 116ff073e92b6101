// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/pad/00_naive.cuh"
#include "tensorcraft/ops/pad/01_vectorized.cuh"
#include "tensorcraft/ops/pad/plan.h"

#include <initializer_list>

// Arrays with a margin. Compiled for each size of an element: vectorized (4 kernels) and naive,
// which takes rows of less than 16 bytes.
namespace tensorcraft::kernels {
namespace detail::pad {

using namespace kernel::pad;

inline constexpr std::array kUnits{Instance<Config>{}, Instance<Config>{{.vectors = 2}},
                                   Instance<Config>{{.wide = 1}},
                                   Instance<Config>{{.vectors = 2, .wide = 1}}};
inline constexpr std::array kElements{Instance<Config>{}, Instance<Config>{{.wide = 1}}};

}  // namespace detail::pad

// An axis of the array: its elements, and those that are added.
struct PadAxis {
  int64_t size;    // of x
  int64_t before;  // before it
  int64_t after;   // after it
};

// out = x with a margin of `value`, both dense and row-major, of 1 to 8 axes. T: any type of 1, 2,
// 4 or 8 bytes. Returns the name of the variant, empty if there is nothing to do. Errors and
// stream as launch_softmax.
template <class T>
std::string_view launch_pad(const T* x, T* out, std::initializer_list<PadAxis> axes, T value,
                            cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace d = detail::pad;
  if (axes.size() < 1 || axes.size() > size_t(d::Axes::kMax))
    throw std::invalid_argument("launch_pad: axes must be 1 to 8");
  int64_t shape[d::Axes::kMax], before[d::Axes::kMax], after[d::Axes::kMax];
  int64_t inside = 1, all = 1, padded = 0;
  int rank = 0;
  for (const PadAxis& axis : axes) {
    validate_sizes("launch_pad",
                   {{"size", axis.size}, {"before", axis.before}, {"after", axis.after}});
    shape[rank] = axis.size;
    before[rank] = axis.before;
    after[rank++] = axis.after;
    if (__builtin_mul_overflow(inside, axis.size, &inside) ||
        __builtin_add_overflow(axis.size, axis.before, &padded) ||
        __builtin_add_overflow(padded, axis.after, &padded) ||
        __builtin_mul_overflow(all, padded, &all))
      throw std::invalid_argument("launch_pad: 64 bits do not count the elements of out");
  }
  if (all == 0) return {};
  if (inside > 0) validate_pointer("launch_pad", "x", x);
  validate_pointer("launch_pad", "out", out);
  using Bits = detail::Bits<sizeof(T)>;
  const auto bits = uint64_t(std::make_unsigned_t<Bits>(bit_cast<Bits>(value)));
  const d::Params p = d::contiguous_params(x, out, bits, rank, before, after, shape);
  return launch_ladder(d::kRungs, p, d::Given{sizeof(T)}, stream, where,
                       Kernels<d::Vectorized, d::kUnits, Bits>{"vectorized"},
                       Kernels<d::Naive, d::kElements, Bits>{"naive"});
}

}  // namespace tensorcraft::kernels
