// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/gemm_problem.hpp"
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/gemm/00_naive.cuh"
#include "tensorcraft/ops/gemm/02_block_tiled.cuh"
#include "tensorcraft/ops/gemm/05_async.cuh"
#include "tensorcraft/ops/gemm/06_tensor_core.cuh"
#include "tensorcraft/ops/gemm/plan.h"

// Matrix products by a rung that the caller names. Compiled for each T, for
// row-major matrices: naive and block_tiled (a kernel each), tensor_core in its
// four tiles and async in its four, both with 16-byte and with single accesses,
// with and without C (16 each). gemm_interface.cuh chooses itself and takes all
// four layouts.
namespace tensorcraft::kernels {

// The steps of the ladder by the names of the hardware documents.
enum class GemmVersion { Naive, Tiled, DoubleBuffer, TensorCore, WGMMA_TMA };

// The variant that a version is.
constexpr std::string_view variant_name(GemmVersion version) {
  constexpr std::string_view names[] = {"naive", "block_tiled", "async", "tensor_core", "wgmma"};
  return names[int(version)];
}

namespace detail::gemm {

using namespace kernel::gemm;

template <class T, class Out, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    gemm_naive(const __grid_constant__ Params p) {
  begin_kernel();
  naive<T, Out, C::value.config>(p);
}
template <class T, class Out, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    gemm_block_tiled(const __grid_constant__ Params p) {
  begin_kernel();
  block_tiled<T, Out, C::value.config>(p);
}
template <class T, class Out, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    gemm_async(const __grid_constant__ Params p) {
  begin_kernel();
  async<T, Out, C::value.config>(p);
}
template <class T, class Out, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    gemm_tensor_core(const __grid_constant__ Params p) {
  begin_kernel();
  tensor_core<T, Out, C::value.config>(p);
}

// A kernel that can add C does if beta is not 0.
constexpr Config tile_config(const TileShape& t, Layout a, Layout b) {
  return {.block_m = t.block_m,
          .block_n = t.block_n,
          .block_k = t.block_k,
          .threads = t.threads,
          .a_layout = a,
          .b_layout = b,
          .has_c = 1};
}

template <class T>
constexpr Config tensor_core_config(const TileShape& t, Layout a, Layout b, bool wide) {
  Config c = tile_config(t, a, b);
  c.warp_m = t.part_m;
  c.warp_n = t.part_n;
  if (wide) c.a_vector = c.b_vector = 16 / int(sizeof(T)), c.d_vector = 4;
  return c;
}

// For row-major operands, of which async copies A along k: one element at a time.
constexpr Config async_config(const TileShape& t, bool wide) {
  Config c = tile_config(t, Layout::row_major, Layout::row_major);
  c.thread_m = t.part_m;
  c.thread_n = t.part_n;
  c.warp_m = t.part_m * kAsyncLanesM;
  c.warp_n = t.part_n * kAsyncLanesN;
  c.stages = t.stages;
  if (wide) c.b_vector = c.d_vector = 4;
  return c;
}

// What was compiled for any alignment serves if the plan's own Config was not: the layouts of the
// call (a size of 1 makes them ambiguous), and single accesses unless all may be wide.
template <class T>
Launch compiled_for(Launch plan, const Problem& q) {
  Config& c = plan.config;
  constexpr int kWide = 16 / int(sizeof(T));
  const bool is_async = c.stages > 1;
  const bool wide = c.a_layout == q.a_layout && c.b_layout == q.b_layout &&
                    (is_async || c.a_vector == kWide) && c.b_vector == kWide && c.d_vector == 4;
  c.a_layout = q.a_layout;
  c.b_layout = q.b_layout;
  c.has_c = 1;
  if (!wide) c.a_vector = c.b_vector = c.d_vector = 1;
  if (plan.shared_bytes && !is_async)
    plan.shared_bytes = tensor_core_shared_bytes(c, int(sizeof(T)));
  return plan;
}

constexpr Layout kRows = Layout::row_major;

template <class T>
struct Naive {
  static constexpr std::array list{Instance<Config>{tile_config(kNaiveTiles[0], kRows, kRows)}};
  template <class C>
  static constexpr auto entry() {
    return &gemm_naive<T, T, C>;
  }
};
template <class T>
struct BlockTiled {
  static constexpr std::array list{Instance<Config>{tile_config(kBlockTiles[0], kRows, kRows)}};
  template <class C>
  static constexpr auto entry() {
    return &gemm_block_tiled<T, T, C>;
  }
};
struct Async {
  static constexpr auto list = [] {
    std::array<Instance<Config>, 4 * std::size(kAsyncTiles)> all{};
    size_t count = 0;
    for (const TileShape& t : kAsyncTiles)
      for (const bool wide : {false, true})
        for (const int has_c : {0, 1}) {
          all[count] = {async_config(t, wide), t.min_blocks};
          all[count++].config.has_c = has_c;
        }
    return all;
  }();
  template <class C>
  static constexpr auto entry() {
    return &gemm_async<float, float, C>;
  }
};
template <class T>
struct TensorCore {
  static constexpr auto list = [] {
    std::array<Instance<Config>, 4 * std::size(kTensorCoreTiles)> all{};
    size_t count = 0;
    for (const TileShape& t : kTensorCoreTiles)
      for (const bool wide : {false, true})
        for (const int has_c : {0, 1}) {
          all[count] = {tensor_core_config<T>(t, kRows, kRows, wide), t.min_blocks};
          all[count++].config.has_c = has_c;
        }
    return all;
  }();
  template <class C>
  static constexpr auto entry() {
    return &gemm_tensor_core<T, T, C>;
  }
};

inline void require_tiles(const Problem& q, const Launch& plan) {
  if (plan.blocks > op::kMaxBlocks || q.k() < 0)
    throw std::invalid_argument("GEMM dimensions exceed maximum grid size");
}

template <class Set, class T>
std::string_view run(std::string_view variant, const Problem& q, const Launch& plan,
                     cudaStream_t stream, DebugInfo where) {
  require_tiles(q, plan);
  Launch compiled = compiled_for<T>(plan, q);
  compiled.config.has_c = q.beta != 0;
  if (launch_listed<Set>(compiled, q.params(), stream, where)) return variant;
  compiled.config.has_c = 1;
  return launch_or_fail<Set>(variant, compiled, q.params(), stream, where);
}

[[noreturn]] inline void fail_unsupported(GemmVersion version, const char* why, DebugInfo where) {
  fail({ErrorKind::unsupported, where}, "launch_gemm: ", variant_name(version), ": ", why);
}

}  // namespace detail::gemm

// C = alpha A B + beta C for row-major A [m, k], B [k, n], C [m, n] of T: float, f16 or bf16. Sums
// are float, rounded once; k = 0 gives beta C; at beta = 0 C is not read. Returns the name of the
// variant that was launched, empty if C is empty. Throws std::invalid_argument for a null array or
// dimensions as validate_gemm_dims; Error of kind unsupported for WGMMA_TMA, which this release has
// no rung for, for TensorCore in float, which it would round, and for DoubleBuffer in 16 bits,
// whose copies in flight cannot convert; std::runtime_error if CUDA refuses. No version runs
// another's kernel.
template <class T>
std::string_view launch_gemm(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k,
                             float alpha = 1, float beta = 0,
                             GemmVersion version = GemmVersion::Tiled,
                             cudaStream_t stream = nullptr, DebugInfo where = {}) {
  namespace g = detail::gemm;
  validate_gemm_dims(m, n, k);
  if (version == GemmVersion::WGMMA_TMA)
    for (const void* matrix : {static_cast<const void*>(a), static_cast<const void*>(b)})
      if (!op::is_vector_aligned(matrix)) throw std::runtime_error("Memory not properly aligned");
  if (version == GemmVersion::WGMMA_TMA)
    g::fail_unsupported(version, "this release has no such rung", where);
  if (m == 0 || n == 0) return {};
  if ((k > 0 && (!a || !b)) || !c) throw std::invalid_argument("Null pointer arguments");
  const g::Problem q = g::make_problem(a, b, c, c, m, n, k, alpha, beta, g::kRows, g::kRows);
  if (version == GemmVersion::Naive)
    return g::run<g::Naive<T>, T>("naive", q, g::naive_launch(q), stream, where);
  if (version == GemmVersion::Tiled)
    return g::run<g::BlockTiled<T>, T>("block_tiled", q, g::block_tiled_launch(q), stream, where);
  const auto sms = [&] { return device_attribute(cudaDevAttrMultiProcessorCount, where); };
  if constexpr (sizeof(T) == 2) {
    if (version == GemmVersion::DoubleBuffer)
      g::fail_unsupported(version, "needs float: a copy in flight cannot convert", where);
    return g::run<g::TensorCore<T>, T>("tensor_core", q, g::tensor_core_launch(q, sms()), stream,
                                       where);
  } else {
    if (version == GemmVersion::TensorCore)
      g::fail_unsupported(version, "needs f16 or bf16; float would be rounded", where);
    return g::run<g::Async, T>("async", q, g::async_launch(q, sms()), stream, where);
  }
}

}  // namespace tensorcraft::kernels
