// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/l2_normalize/01_block.cuh"
#include "tensorcraft/ops/l2_normalize/02_in_registers.cuh"
#include "tensorcraft/ops/l2_normalize/plan.h"

// Rows of length 1. Compiled for each T: in_registers for aligned rows of the widths of
// kRegisterRows (18 kernels), and block, which takes all other rows (2).
namespace tensorcraft::kernels {
namespace detail::l2_normalize {

using namespace kernel::l2_normalize;

inline constexpr std::array kBlockInstances{Instance<Config>{{.threads = 128, .group = 128}},
                                            Instance<Config>{{.threads = 256, .group = 256}}};

}  // namespace detail::l2_normalize

// out = in / max(length of the row, eps) for each of `rows` rows of `cols` elements, one after
// another; out may be in. T: float, f16 or bf16, computed in float. Returns the name of the variant
// that was launched, empty if there is nothing to do. Throws std::invalid_argument for a
// negative size or a null array, std::runtime_error if CUDA refuses; enqueues on `stream`.
template <class T>
std::string_view launch_l2_normalize(const T* in, T* out, int64_t rows, int64_t cols,
                                     float eps = 1e-12f, cudaStream_t stream = nullptr,
                                     DebugInfo where = {}) {
  namespace l = detail::l2_normalize;
  validate_sizes("launch_l2_normalize", {{"rows", rows}, {"cols", cols}});
  if (rows == 0 || cols == 0) return {};
  validate_arrays("launch_l2_normalize", {{"in", in}, {"out", out}});
  return launch_ladder(l::kRungs, l::contiguous_params(in, out, rows, cols, eps),
                       l::Given{sizeof(T)}, stream, where,
                       Kernels<l::InRegisters, kRowsInRegisters<T, l::Config>, T>{"in_registers"},
                       Kernels<l::Block, l::kBlockInstances, T>{"block"});
}

}  // namespace tensorcraft::kernels
