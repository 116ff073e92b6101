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

template <class T, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    l2_normalize_in_registers(const __grid_constant__ Params p) {
  begin_kernel();
  in_registers<T, C::value.config>(p);
}
template <class T, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    l2_normalize_block(const __grid_constant__ Params p) {
  begin_kernel();
  block<T, C::value.config>(p);
}

template <class T>
struct InRegisters {
  static constexpr auto list = [] {
    std::array<Instance<Config>, kRegisterRows.size()> all{};
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = {in_registers_config(kRegisterRows[i], 16 / int(sizeof(T)))};
    return all;
  }();
  template <class C>
  static constexpr auto entry() {
    return &l2_normalize_in_registers<T, C>;
  }
};

template <class T>
struct Block {
  static constexpr std::array list{Instance<Config>{{.threads = 128, .group = 128}},
                                   Instance<Config>{{.threads = 256, .group = 256}}};
  template <class C>
  static constexpr auto entry() {
    return &l2_normalize_block<T, C>;
  }
};

}  // namespace detail::l2_normalize

// out = in / max(length of the row, eps) for each of `rows` rows of `cols` elements, one after
// another; out may be in. T: float, f16 or bf16, computed in float. Returns the name of the variant
// that was launched, empty if there is nothing to do. Throws std::invalid_argument for a negative
// size or a null array, std::runtime_error if CUDA refuses; enqueues on `stream`.
template <class T>
std::string_view launch_l2_normalize(const T* in, T* out, int64_t rows, int64_t cols,
                                     float eps = 1e-12f, cudaStream_t stream = nullptr,
                                     DebugInfo where = {}) {
  namespace l = detail::l2_normalize;
  validate_size("launch_l2_normalize", "rows", rows);
  validate_size("launch_l2_normalize", "cols", cols);
  if (rows == 0 || cols == 0) return {};
  validate_pointer("launch_l2_normalize", "in", in);
  validate_pointer("launch_l2_normalize", "out", out);
  const l::Params p = l::contiguous_params(in, out, rows, cols, eps);
  if (l::in_registers_problem(p).empty() &&
      launch_listed<l::InRegisters<T>>(l::in_registers_launch(p, sizeof(T)), p, stream, where))
    return "in_registers";
  return launch_or_fail<l::Block<T>>("block", l::block_launch(p), p, stream, where);
}

}  // namespace tensorcraft::kernels
