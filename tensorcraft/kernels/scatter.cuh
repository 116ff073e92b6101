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

template <class T, class C>
__global__ void __launch_bounds__(C::value.config.threads)
    scatter_claimed(const __grid_constant__ Params p) {
  begin_kernel();
  claimed<T, C::value.config>(p);
}
template <class T, class C>
__global__ void __launch_bounds__(C::value.config.threads)
    scatter_naive(const __grid_constant__ Params p) {
  begin_kernel();
  naive<T, C::value.config>(p);
}

template <class T>
struct Claimed {
  static constexpr std::array list{
      Instance<Config>{{.entries = kPlaceEntries}},
      Instance<Config>{{.entries = kPlaceEntries, .vector = kUnitBytes / int(sizeof(T))}}};
  template <class C>
  static constexpr auto entry() {
    return &scatter_claimed<T, C>;
  }
};
template <class T>
struct Combined {
  static constexpr std::array list{Instance<Config>{{.entries = kCombineEntries, .combines = 1}}};
  template <class C>
  static constexpr auto entry() {
    return &scatter_claimed<T, C>;
  }
};
template <class T>
struct Naive {
  static constexpr std::array list{Instance<Config>{}, Instance<Config>{{.wide = 1}}};
  template <class C>
  static constexpr auto entry() {
    return &scatter_naive<T, C>;
  }
};

// `Set` holds what claimed is compiled for, `Element` what naive moves.
template <class Set, class Element>
std::string_view launch(const char* name, const Params& p, int64_t outer, int64_t inner,
                        cudaStream_t stream, DebugInfo where) {
  validate_size(name, "outer", outer);
  validate_size(name, "size", p.size);
  validate_size(name, "inner", inner);
  validate_size(name, "count", p.num_updates);
  if (outer == 0 || p.size == 0 || inner == 0) return {};
  validate_pointer(name, "x", p.x);
  validate_pointer(name, "out", p.out);
  if (p.num_updates > 0) {
    validate_pointer(name, "indices", p.indices);
    validate_pointer(name, "updates", p.updates);
  }
  const int num_sms = device_attribute(cudaDevAttrMultiProcessorCount, where);
  if (claimed_problem(p, num_sms).empty() && claimed_doubt(p).empty())
    return launch_or_fail<Set>("claimed", claimed_launch(p, sizeof(Element), num_sms),
                               claimed_params(p, num_sms), stream, where);
  return launch_or_fail<Naive<Element>>("naive", naive_launch(p), p, stream, where);
}

}  // namespace detail::scatter

// out is x, but out[o, indices[o, j, i], i] = updates[o, j, i], for dense arrays: x and out are
// [outer, size, inner], indices and updates [outer, count, inner]. Of several updates of one place
// the last one stays; an update whose index is not in [-size, size) is left out. out may be x. T:
// any type of 1, 2, 4 or 8 bytes; Id: int32_t or int64_t. Returns the name of the variant, empty if
// there is nothing to do. Errors and stream as launch_softmax.
template <class T, class Id>
std::string_view launch_scatter(const T* x, const Id* indices, const T* updates, T* out,
                                int64_t outer, int64_t size, int64_t inner, int64_t count,
                                cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace s = detail::scatter;
  using Bits = detail::Bits<sizeof(T)>;
  return s::launch<s::Claimed<Bits>, Bits>(
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
  return s::launch<s::Combined<T>, T>("launch_scatter_combined",
                                      s::contiguous_params(x, indices, updates, out, sizeof(Id),
                                                           operation, outer, size, inner, count),
                                      outer, inner, stream, where);
}

}  // namespace tensorcraft::kernels
