// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/layout.hpp"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/kernels/gemm.cuh"
#include "tensorcraft/ops/gemm/03_thread_tiled.cuh"
#include "tensorcraft/ops/gemm/04_vectorized.cuh"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

// Matrix products in all four layouts by a rung and a tile chosen for the call. Compiled for each T
// and type of the result, for four layouts: tensor_core for f16 and bf16 (four tiles, with 16-byte
// and with single accesses: 32 kernels), vectorized for float (16), thread_tiled for float8 (8).
namespace tensorcraft::kernels {

// The tile that wins if another would take as long. `stages` is how many tiles of an operand are in
// flight at most: tensor_core has two.
struct GemmConfig {
  // In elements of the result, but tile_k, which is along the sum.
  int tile_m = 128, tile_n = 128, tile_k = 32;
  int warp_m = 64, warp_n = 64;
  int stages = 3;
  bool use_tensor_core = true;
};

namespace detail::gemm {

// tensor_core's tiles, that of a GemmConfig first: the first of equals is chosen.
constexpr auto tiles_from(const GemmConfig& config) {
  std::array<TileShape, std::size(kTensorCoreTiles)> tiles{};
  std::copy(std::begin(kTensorCoreTiles), std::end(kTensorCoreTiles), tiles.begin());
  for (TileShape& t : tiles) {
    if (t.block.m != config.tile_m || t.block.n != config.tile_n || t.block.k != config.tile_k ||
        t.part.m != config.warp_m || t.part.n != config.warp_n)
      continue;
    std::swap(t, tiles[0]);
    return tiles;
  }
  throw std::invalid_argument("GemmConfig: there is no such tile");
}
inline constexpr auto kInterfaceTiles = tiles_from(GemmConfig{});

// Every tile in all four layouts, with single accesses and, if `kWide`, with wide ones:
// instance(tile, a_layout, b_layout, wide).
template <bool kWide, size_t n, class F>
constexpr auto list_of_layouts(const std::array<TileShape, n>& tiles, F instance) {
  std::array<Instance<Config>, (kWide ? 8 : 4) * n> all{};
  size_t count = 0;
  for (const TileShape& t : tiles)
    for (const Layout a : {Layout::row_major, Layout::column_major})
      for (const Layout b : {Layout::row_major, Layout::column_major}) {
        all[count++] = instance(t, a, b, false);
        if (kWide) all[count++] = instance(t, a, b, true);
      }
  return all;
}

template <class T>
inline constexpr auto kInterfaceTensorCoreList =
    list_of_layouts<true>(kInterfaceTiles, [](const TileShape& t, Layout a, Layout b, bool wide) {
      return Instance<Config>{tensor_core_config<T>(t, a, b, wide, true), t.min_blocks};
    });

// A thread's part of a tile, in accesses of 4 elements or of 1.
constexpr Instance<Config> thread_instance(const TileShape& t, Layout a, Layout b, bool wide) {
  Config c = with_layouts(thread_tile(t), a, b);
  c.a_vector = c.b_vector = c.d_vector = wide ? 4 : 1;
  return {c, wide ? 2 : 1};
}
inline constexpr auto kVectorizedList =
    list_of_layouts<true>(std::to_array(kThreadTiles), thread_instance);
inline constexpr auto kThreadTiledList =
    list_of_layouts<false>(std::to_array(kThreadTiles), thread_instance);

}  // namespace detail::gemm

// D = alpha A B + beta C. T: float, f16, bf16, e4m3 or e5m2; the result is T or float.
template <class T>
class GEMMInterface {
 public:
  // `layout` says how A [m, k] and B [k, n] lie: ROW_COL, the default, has rows of A and columns of
  // B next to each other in memory (NT: B is stored as [n, k]). C and D are row-major [m, n] and
  // may be one array. If beta is 0 C is not read. Returns the name of the variant that was
  // launched, empty if D is empty. Throws std::invalid_argument "Null pointer arguments" and
  // "Invalid matrix dimensions" (a negative one), std::runtime_error if CUDA refuses.
  template <class Out>
  static std::string_view execute(const T* a, const T* b, const Out* c, Out* d, int64_t m,
                                  int64_t n, int64_t k, float alpha = 1, float beta = 0,
                                  MemoryLayout layout = MemoryLayout::ROW_COL,
                                  cudaStream_t stream = nullptr, DebugInfo where = {}) {
    namespace g = detail::gemm;
    using g::Layout;
    static_assert(std::is_same_v<Out, T> || std::is_same_v<Out, float>, "D is of T or float");
    if (m < 0 || n < 0 || k < 0) throw std::invalid_argument("Invalid matrix dimensions");
    if (m == 0 || n == 0) return {};
    if ((k > 0 && (!a || !b)) || !d || (beta != 0 && !c))
      throw std::invalid_argument("Null pointer arguments");
    validate_gemm_dims(m, n, k);
    const bool a_columns = layout == MemoryLayout::COL_ROW || layout == MemoryLayout::COL_COL;
    const bool b_columns = layout == MemoryLayout::ROW_COL || layout == MemoryLayout::COL_COL;
    const Layout a_layout = a_columns ? Layout::column_major : Layout::row_major;
    const Layout b_layout = b_columns ? Layout::column_major : Layout::row_major;
    const auto p = g::contiguous_params(a, a_layout, b, b_layout, c, d, m, n, k, alpha, beta);
    const g::Given given{.operand_bytes = sizeof(T), .result_bytes = sizeof(Out)};
    const op::Gpu gpu = current_gpu(where);
    const auto run = [&](auto compiled, const g::Start& start) {
      return g::run<T>(compiled, start, p, a_layout, b_layout, stream, where);
    };
    if constexpr (sizeof(T) == 2 && GemmConfig{}.use_tensor_core)
      return run(Kernels<g::TensorCore, g::kInterfaceTensorCoreList<T>, T, Out>{"tensor_core"},
                 g::tensor_core_start(p, given, gpu, g::kInterfaceTiles));
    else if constexpr (std::is_same_v<T, float>)
      return run(Kernels<g::Vectorized, g::kVectorizedList, T, Out>{"vectorized"},
                 g::vectorized(p, given, gpu).start);
    else
      return run(Kernels<g::ThreadTiled, g::kThreadTiledList, T, Out>{"thread_tiled"},
                 g::thread_tiled(p, given, gpu).start);
  }

  // The same if C is D's former content.
  template <class Out>
  static std::string_view execute(const T* a, const T* b, Out* d, int64_t m, int64_t n, int64_t k,
                                  float alpha = 1, float beta = 0,
                                  MemoryLayout layout = MemoryLayout::ROW_COL,
                                  cudaStream_t stream = nullptr, DebugInfo where = {}) {
    return execute(a, b, static_cast<const Out*>(d), d, m, n, k, alpha, beta, layout, stream,
                   where);
  }
};

// By the names of the hardware documents.
using FP8GEMM = GEMMInterface<e4m3>;
using BF16GEMM = GEMMInterface<bf16>;
using FP16GEMM = GEMMInterface<f16>;
using FP32GEMM = GEMMInterface<float>;

}  // namespace tensorcraft::kernels
