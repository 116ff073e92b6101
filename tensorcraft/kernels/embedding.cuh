// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/embedding/00_naive.cuh"
#include "tensorcraft/ops/embedding/01_vectorized.cuh"
#include "tensorcraft/ops/embedding/plan.h"

// Rows of a table by number. Compiled for each Id and each size of an element: vectorized for 1 to
// 32 threads a row (6 kernels), and naive, which takes all other rows.
namespace tensorcraft::kernels {
namespace detail {

// As only bits move, one kernel serves every type of a size.
template <size_t bytes>
using Moved = std::conditional_t<
    bytes == 1, uint8_t,
    std::conditional_t<bytes == 2, int16_t, std::conditional_t<bytes == 4, int32_t, int64_t>>>;

namespace embedding {

using namespace kernel::embedding;

template <class Id, class T, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    embedding_vectorized(const __grid_constant__ Params p) {
  begin_kernel();
  vectorized<Id, T, C::value.config>(p);
}
template <class Id, class T, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    embedding_naive(const __grid_constant__ Params p) {
  begin_kernel();
  naive<Id, T, C::value.config>(p);
}

template <class Id, class T>
struct Vectorized {
  static constexpr std::array list{
      Instance<Config>{{.group = 1}},  Instance<Config>{{.group = 2}},
      Instance<Config>{{.group = 4}},  Instance<Config>{{.group = 8}},
      Instance<Config>{{.group = 16}}, Instance<Config>{{.group = 32}}};
  template <class C>
  static constexpr auto entry() {
    return &embedding_vectorized<Id, T, C>;
  }
};
template <class Id, class T>
struct Naive {
  static constexpr std::array list{Instance<Config>{}};
  template <class C>
  static constexpr auto entry() {
    return &embedding_naive<Id, T, C>;
  }
};

}  // namespace embedding
}  // namespace detail

// out[i, :] = table[ids[i], :] for `count` ids and a row-major table [rows, cols]; an id outside
// [0, rows) gives a row of NaN. T: float, f16, bf16, e4m3 or e5m2; Id: int32_t or int64_t. Returns
// the name of the variant, empty if there is nothing to do. Errors and stream as launch_softmax.
template <class Id, class T>
std::string_view launch_embedding(const Id* ids, const T* table, T* out, int64_t count,
                                  int64_t rows, int64_t cols, cudaStream_t stream = nullptr,
                                  DebugInfo where = {}) {
  namespace e = detail::embedding;
  using Word = detail::Moved<sizeof(T)>;
  validate_size("launch_embedding", "count", count);
  validate_size("launch_embedding", "rows", rows);
  validate_size("launch_embedding", "cols", cols);
  if (count == 0 || cols == 0) return {};
  validate_pointer("launch_embedding", "ids", ids);
  if (rows > 0) validate_pointer("launch_embedding", "table", table);
  validate_pointer("launch_embedding", "out", out);
  const e::Params p = e::contiguous_params(ids, table, out, count, rows, cols, sizeof(T));
  if (e::vectorized_problem(p, sizeof(T)).empty())
    return launch_or_fail<e::Vectorized<Id, Word>>("vectorized", e::vectorized_launch(p, sizeof(T)),
                                                   p, stream, where);
  return launch_or_fail<e::Naive<Id, Word>>("naive", e::naive_launch(p), p, stream, where);
}

}  // namespace tensorcraft::kernels
