// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/topk/01_block.cuh"
#include "tensorcraft/ops/topk/02_warp.cuh"
#include "tensorcraft/ops/topk/plan.h"

// The k largest of each row. Compiled for each T: warp for rows of up to 512 elements in 5 sizes,
// block for longer ones (6 kernels).
namespace tensorcraft::kernels {
namespace detail::topk {

using namespace kernel::topk;

inline constexpr auto kWarps = [] {
  std::array<Instance<Config>, 5> all{};
  for (int i = 0; i < 5; ++i) all[size_t(i)].config = {.threads = 128, .slots = 1 << i};
  return all;
}();
inline constexpr std::array kBlocks{Instance<Config>{}};

}  // namespace detail::topk

// out[rows][k] = the k largest of each of `rows` rows of `cols` elements, one after another, the
// largest first, and if indices is not null indices[rows][k] = their columns: of equals the
// lower column comes first, zeros of both signs are equal, and a NaN is larger than any number.
// T: float, f16 or bf16; k is at most 64 and at most cols. out may not be in. Returns the name of
// the variant, empty if there is nothing to do. Errors and stream as launch_softmax.
template <class T>
std::string_view launch_topk(const T* in, T* out, int64_t* indices, int64_t rows, int64_t cols,
                             int64_t k, cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace t = detail::topk;
  constexpr const char* kLauncher = "launch_topk";
  validate_sizes(kLauncher, {{"rows", rows}, {"cols", cols}, {"k", k}});
  if (k > cols || k > t::kMaxK)
    throw std::invalid_argument(join(kLauncher, ": k must be at most ", t::kMaxK,
                                     " and at most cols, got ", k, " of ", cols));
  if (rows == 0 || k == 0) return {};
  validate_arrays(kLauncher, {{"in", in}, {"out", out}});
  const t::Params p = t::contiguous_params(in, out, indices, rows, cols, k);
  if (const auto why = t::rows_refusal(p); !why.empty())
    throw std::invalid_argument(join(kLauncher, ": ", why));
  return launch_ladder(t::kRungs, p, op::NoGiven{}, stream, where,
                       Kernels<t::Warp, t::kWarps, T>{"warp"},
                       Kernels<t::Block, t::kBlocks, T>{"block"});
}

}  // namespace tensorcraft::kernels
