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

template <class Id, class C>
__global__ void __launch_bounds__(C::value.config.threads)
    gather_vectorized(const __grid_constant__ Params p) {
  begin_kernel();
  vectorized<Id, int64_t, C::value.config>(p);
}
template <class Id, class T, class C>
__global__ void __launch_bounds__(C::value.config.threads)
    gather_naive(const __grid_constant__ Params p) {
  begin_kernel();
  naive<Id, T, C::value.config>(p);
}

template <class Id>
struct Vectorized {
  static constexpr std::array list{Instance<Config>{{.vector = 2}},
                                   Instance<Config>{{.vector = 2, .vectors = 4}},
                                   Instance<Config>{{.vector = 2, .wide = 1}},
                                   Instance<Config>{{.vector = 2, .vectors = 4, .wide = 1}}};
  template <class C>
  static constexpr auto entry() {
    return &gather_vectorized<Id, C>;
  }
};
template <class Id, class T>
struct Naive {
  static constexpr std::array list{Instance<Config>{}, Instance<Config>{{.wide = 1}}};
  template <class C>
  static constexpr auto entry() {
    return &gather_naive<Id, T, C>;
  }
};

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
  validate_size("launch_take", "outer", outer);
  validate_size("launch_take", "axis_size", axis_size);
  validate_size("launch_take", "inner", inner);
  validate_size("launch_take", "count", count);
  if (outer == 0 || inner == 0 || count == 0) return {};
  if (axis_size > 0) validate_pointer("launch_take", "x", x);
  validate_pointer("launch_take", "indices", indices);
  validate_pointer("launch_take", "out", out);
  const g::Gather taken =
      g::take_rows(x, indices, out, sizeof(T), 0, outer, axis_size, inner, count);
  if (g::unit_bytes(taken) == g::kVectorBytes) {
    const int num_sms = device_attribute(cudaDevAttrMultiProcessorCount, where);
    return launch_or_fail<g::Vectorized<Id>>("vectorized", g::vectorized_launch(taken, num_sms),
                                             g::vectorized_params(taken), stream, where);
  }
  return launch_or_fail<g::Naive<Id, detail::Bits<sizeof(T)>>>(
      "naive", g::naive_launch(taken), g::naive_params(taken), stream, where);
}

}  // namespace tensorcraft::kernels
