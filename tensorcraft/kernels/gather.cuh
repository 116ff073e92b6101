// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/gather/00_naive.cuh"
#include "tensorcraft/ops/gather/01_vectorized.cuh"
#include "tensorcraft/ops/gather/plan.h"

// Parts of an array by index. Compiled for each Id: vectorized for parts of whole 16-byte units (4
// kernels), and for each size of an element naive, which takes all others.
namespace tensorcraft::kernels {
namespace detail::gather {

using namespace kernel::gather;

inline constexpr std::array kUnits{Instance<Config>{{.vector = 2}},
                                   Instance<Config>{{.vector = 2, .vectors = 4}},
                                   Instance<Config>{{.vector = 2, .wide = 1}},
                                   Instance<Config>{{.vector = 2, .vectors = 4, .wide = 1}}};
inline constexpr std::array kElements{Instance<Config>{}, Instance<Config>{{.wide = 1}}};

}  // namespace detail::gather

// out[o, i, :] = x[o, indices[i], :] for a dense x of [outer, axis_size, inner] and `count` indices
// in [-axis_size, axis_size); any other index gives elements of bits 0. T: any type of 1, 2, 4 or 8
// bytes; Id: int32_t or int64_t. Returns the name of the variant, empty if there is nothing to do.
// Errors and stream as launch_softmax.
template <class Id, class T>
std::string_view launch_take(const T* x, const Id* indices, T* out, int64_t outer,
                             int64_t axis_size, int64_t inner, int64_t count,
                             cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace g = detail::gather;
  validate_sizes("launch_take",
                 {{"outer", outer}, {"axis_size", axis_size}, {"inner", inner}, {"count", count}});
  if (outer == 0 || inner == 0 || count == 0) return {};
  if (axis_size > 0) validate_pointer("launch_take", "x", x);
  validate_arrays("launch_take", {{"indices", indices}, {"out", out}});
  return launch_ladder(g::kRungs,
                       g::contiguous_params(x, indices, out, outer, axis_size, inner, count),
                       g::Given{sizeof(T)}, stream, where,
                       Kernels<g::Vectorized, g::kUnits, Id, int64_t>{"vectorized"},
                       Kernels<g::Naive, g::kElements, Id, detail::Bits<sizeof(T)>>{"naive"});
}

}  // namespace tensorcraft::kernels
