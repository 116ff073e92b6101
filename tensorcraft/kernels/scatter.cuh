// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/scatter/00_naive.cuh"
#include "tensorcraft/ops/scatter/01_claimed.cuh"
#include "tensorcraft/ops/scatter/plan.h"

// Updates to the places that indices name. Compiled for each size of an element: claimed (2
// kernels) and naive (2), for lines and updates that 31 bits do not count; for each type whose
// updates are combined, claimed (1) and naive (2), which takes many updates of few places.
namespace tensorcraft::kernels {
namespace detail::scatter {

using namespace kernel::scatter;

// The kernels of claimed places for elements of so many bytes.
template <size_t bytes>
struct Placed {
  static constexpr std::array list{
      Instance<Config>{{.entries = kPlaceEntries}},
      Instance<Config>{{.entries = kPlaceEntries, .vector = kUnitBytes / int(bytes)}}};
};
inline constexpr std::array kCombined{
    Instance<Config>{{.entries = kCombineEntries, .combines = 1}}};
inline constexpr std::array kElements{Instance<Config>{}, Instance<Config>{{.wide = 1}}};

// Checks, chooses and launches; kList holds what claimed is compiled for, for elements T.
template <class T, const auto& kList>
std::string_view launch(const char* name, const Params& p, int64_t outer, int64_t inner,
                        cudaStream_t stream, DebugInfo where) {
  validate_sizes(name,
                 {{"outer", outer}, {"size", p.size}, {"inner", inner}, {"count", p.num_updates}});
  if (outer == 0 || p.size == 0 || inner == 0) return {};
  validate_arrays(name, {{"x", p.x}, {"out", p.out}});
  if (p.num_updates > 0) validate_arrays(name, {{"indices", p.indices}, {"updates", p.updates}});
  return launch_ladder(kRungs, p, Given{sizeof(T)}, stream, where,
                       Kernels<Claimed, kList, T>{"claimed"},
                       Kernels<Naive, kElements, T>{"naive"});
}

}  // namespace detail::scatter

// out is x, but out[o, indices[o, j, i], i] = updates[o, j, i], for dense arrays: x and out are
// [outer, size, inner], indices and updates [outer, count, inner]. Of several updates of one place
// the last one stays; an update whose index is not in [-size, size) is left out. out may be x. T:
// any type of 1, 2, 4 or 8 bytes; Id: int32_t or int64_t. Returns the name of the variant, empty
// if there is nothing to do. Errors and stream as launch_softmax.
template <class T, class Id>
std::string_view launch_scatter(const T* x, const Id* indices, const T* updates, T* out,
                                int64_t outer, int64_t size, int64_t inner, int64_t count,
                                cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace s = detail::scatter;
  return s::launch<detail::Bits<sizeof(T)>, s::Placed<sizeof(T)>::list>(
      "launch_scatter",
      s::contiguous_params(x, indices, updates, out, sizeof(Id), s::Operation::none, outer, size,
                           inner, count),
      outer, inner, stream, where);
}

// The same, but updates are combined with what x has, in the order of j: added, multiplied, or the
// largest or smallest kept. T: float, f16, bf16, which are rounded once, int32_t or int64_t.
template <kernel::scatter::Operation operation, class T, class Id>
std::string_view launch_scatter_combined(const T* x, const Id* indices, const T* updates, T* out,
                                         int64_t outer, int64_t size, int64_t inner, int64_t count,
                                         cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace s = detail::scatter;
  static_assert(operation != s::Operation::none, "launch_scatter places updates");
  return s::launch<T, s::kCombined>("launch_scatter_combined",
                                    s::contiguous_params(x, indices, updates, out, sizeof(Id),
                                                         operation, outer, size, inner, count),
                                    outer, inner, stream, where);
}

}  // namespace tensorcraft::kernels
