// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/embedding/00_naive.cuh"
#include "tensorcraft/ops/embedding/01_vectorized.cuh"
#include "tensorcraft/ops/embedding/plan.h"

// Rows of a table by number. Compiled for each Id and each size of an element: vectorized for 1 to
// 32 threads a row (6 kernels), and naive, which takes all other rows.
namespace tensorcraft::kernels {
namespace detail::embedding {

using namespace kernel::embedding;

inline constexpr std::array kGroups{
    Instance<Config>{{.group = 1}},  Instance<Config>{{.group = 2}},
    Instance<Config>{{.group = 4}},  Instance<Config>{{.group = 8}},
    Instance<Config>{{.group = 16}}, Instance<Config>{{.group = 32}}};
inline constexpr std::array kAnyRows{Instance<Config>{}};

}  // namespace detail::embedding

// out[i, :] = table[ids[i], :] for `count` ids and a row-major table [rows, cols]; an id outside
// [0, rows) gives a row of NaN. T: float, f16, bf16, e4m3 or e5m2; Id: int32_t or int64_t. Returns
// the name of the variant, empty if there is nothing to do. Errors and stream as launch_softmax.
template <class Id, class T>
std::string_view launch_embedding(const Id* ids, const T* table, T* out, int64_t count,
                                  int64_t rows, int64_t cols, cudaStream_t stream = nullptr,
                                  DebugInfo where = {}) {
  namespace e = detail::embedding;
  using Word = detail::Bits<sizeof(T)>;
  validate_sizes("launch_embedding", {{"count", count}, {"rows", rows}, {"cols", cols}});
  if (count == 0 || cols == 0) return {};
  validate_pointer("launch_embedding", "ids", ids);
  if (rows > 0) validate_pointer("launch_embedding", "table", table);
  validate_pointer("launch_embedding", "out", out);
  const e::CallParams p = e::contiguous_params(ids, table, out, count, rows, cols, sizeof(T));
  return launch_ladder(e::kRungs, p, e::Given{sizeof(T)}, stream, where,
                       Kernels<e::Vectorized, e::kGroups, Id, Word>{"vectorized"},
                       Kernels<e::Naive, e::kAnyRows, Id, Word>{"naive"});
}

}  // namespace tensorcraft::kernels
