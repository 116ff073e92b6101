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

template <class T, class C>
__global__ void __launch_bounds__(C::value.config.threads)
    topk_warp(const __grid_constant__ Params p) {
  begin_kernel();
  warp<T, C::value.config>(p);
}
template <class T, class C>
__global__ void __launch_bounds__(C::value.config.threads)
    topk_block(const __grid_constant__ Params p) {
  begin_kernel();
  block<T, C::value.config>(p);
}

template <class T>
struct Warp {
  static constexpr auto list = [] {
    std::array<Instance<Config>, 5> all{};
    for (int i = 0; i < 5; ++i) all[size_t(i)].config = {.threads = 128, .slots = 1 << i};
    return all;
  }();
  template <class C>
  static constexpr auto entry() {
    return &topk_warp<T, C>;
  }
};
template <class T>
struct Block {
  static constexpr std::array list{Instance<Config>{}};
  template <class C>
  static constexpr auto entry() {
    return &topk_block<T, C>;
  }
};

}  // namespace detail::topk

// out[rows][k] = the k largest of each of `rows` rows of `cols` elements, one after another, the
// largest first, and, if indices is not null, indices[rows][k] = their columns: of equals the lower
// column comes first, zeros of both signs are equal, and a NaN is larger than any number. T: float,
// f16 or bf16; k is at most 64 and at most cols. out may not be in. Returns the name of the
// variant, empty if there is nothing to do. Errors and stream as launch_softmax.
template <class T>
std::string_view launch_topk(const T* in, T* out, int64_t* indices, int64_t rows, int64_t cols,
                             int64_t k, cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace t = detail::topk;
  constexpr const char* kLauncher = "launch_topk";
  validate_size(kLauncher, "rows", rows);
  validate_size(kLauncher, "cols", cols);
  validate_size(kLauncher, "k", k);
  if (k > cols || k > t::kMaxK)
    throw std::invalid_argument(join(kLauncher, ": k must be at most ", t::kMaxK,
                                     " and at most cols, got ", k, " of ", cols));
  if (rows == 0 || k == 0) return {};
  validate_pointer(kLauncher, "in", in);
  validate_pointer(kLauncher, "out", out);
  const t::Params p = t::contiguous_params(in, out, indices, rows, cols, k);
  if (const auto problem = t::rows_problem(p); !problem.empty())
    throw std::invalid_argument(join(kLauncher, ": ", problem));
  if (t::warp_problem(p).empty())
    return launch_or_fail<t::Warp<T>>("warp", t::warp_launch(p), p, stream, where);
  return launch_or_fail<t::Block<T>>("block", t::block_launch(p), p, stream, where);
}

}  // namespace tensorcraft::kernels
