// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/layout.hpp"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/kernels/gemm.cuh"
#include "tensorcraft/ops/gemm/03_thread_tiled.cuh"
#include "tensorcraft/ops/gemm/04_vectorized.cuh"

#include <algorithm>
#include <array>
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

template <class T, class Out, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    gemm_vectorized(const __grid_constant__ Params p) {
  begin_kernel();
  vectorized<T, Out, C::value.config>(p);
}
template <class T, class Out, class C>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks())
    gemm_thread_tiled(const __grid_constant__ Params p) {
  begin_kernel();
  thread_tiled<T, Out, C::value.config>(p);
}

// tensor_core's tiles, that of a GemmConfig first: the first of equals is chosen.
constexpr auto tiles_from(const GemmConfig& config) {
  std::array<TileShape, std::size(kTensorCoreTiles)> tiles{};
  std::copy(std::begin(kTensorCoreTiles), std::end(kTensorCoreTiles), tiles.begin());
  for (TileShape& t : tiles) {
    if (t.block_m != config.tile_m || t.block_n != config.tile_n || t.block_k != config.tile_k ||
        t.part_m != config.warp_m || t.part_n != config.warp_n)
      continue;
    std::swap(t, tiles[0]);
    return tiles;
  }
  throw std::invalid_argument("GemmConfig: there is no such tile");
}
inline constexpr auto kInterfaceTiles = tiles_from(GemmConfig{});

// f(a_layout, b_layout) for each of the 4.
template <class F>
constexpr void for_each_form(F f) {
  for (const Layout a : {Layout::row_major, Layout::column_major})
    for (const Layout b : {Layout::row_major, Layout::column_major}) f(a, b);
}

template <class T, class Out>
struct InterfaceTensorCore {
  static constexpr auto list = [] {
    std::array<Instance<Config>, 8 * kInterfaceTiles.size()> all{};
    size_t count = 0;
    for (const TileShape& t : kInterfaceTiles)
      for_each_form([&](Layout a, Layout b) {
        for (const bool wide : {false, true})
          all[count++] = {tensor_core_config<T>(t, a, b, wide), t.min_blocks};
      });
    return all;
  }();
  template <class C>
  static constexpr auto entry() {
    return &gemm_tensor_core<T, Out, C>;
  }
};

// A thread's part of a tile, in accesses of `vector` elements.
constexpr Config thread_config(const TileShape& t, Layout a, Layout b, int vector) {
  Config c = tile_config(t, a, b);
  c.thread_m = t.part_m;
  c.thread_n = t.part_n;
  c.a_vector = c.b_vector = c.d_vector = vector;
  return c;
}

template <class Out>
struct InterfaceVectorized {
  static constexpr auto list = [] {
    std::array<Instance<Config>, 8 * std::size(kVectorTiles)> all{};
    size_t count = 0;
    for (const TileShape& t : kVectorTiles)
      for_each_form([&](Layout a, Layout b) {
        all[count++] = {thread_config(t, a, b, 1), 1};
        all[count++] = {thread_config(t, a, b, 4), 2};
      });
    return all;
  }();
  template <class C>
  static constexpr auto entry() {
    return &gemm_vectorized<float, Out, C>;
  }
};

template <class T, class Out>
struct InterfaceThreadTiled {
  static constexpr auto list = [] {
    std::array<Instance<Config>, 4 * std::size(kThreadTiles)> all{};
    size_t count = 0;
    for (const TileShape& t : kThreadTiles)
      for_each_form([&](Layout a, Layout b) { all[count++] = {thread_config(t, a, b, 1)}; });
    return all;
  }();
  template <class C>
  static constexpr auto entry() {
    return &gemm_thread_tiled<T, Out, C>;
  }
};

}  // namespace detail::gemm

// D = alpha A B + beta C. T: float, f16, bf16, e4m3 or e5m2; the result is T or float.
template <class T>
class GEMMInterface {
 public:
  // `layout` says how memory holds A [m, k] and B [k, n]: ROW_COL, the default, has rows of A and
  // columns of B next to each other in memory (NT: B is stored as [n, k]). C and D are row-major
  // [m, n] and may be one array. At beta = 0 C is not read. Returns the name of the variant that
  // was launched, empty if D is empty. Throws std::invalid_argument "Null pointer arguments" and
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
    const g::Problem q = g::make_problem(a, b, c, d, m, n, k, alpha, beta,
                                         a_columns ? Layout::column_major : Layout::row_major,
                                         b_columns ? Layout::column_major : Layout::row_major);
    const int sms = device_attribute(cudaDevAttrMultiProcessorCount, where);
    if constexpr (sizeof(T) == 2 && GemmConfig{}.use_tensor_core)
      return g::run<g::InterfaceTensorCore<T, Out>, T>(
          "tensor_core", q, g::tensor_core_launch(q, sms, g::kInterfaceTiles), stream, where);
    else if constexpr (std::is_same_v<T, float>)
      return g::run<g::InterfaceVectorized<Out>, T>("vectorized", q, g::vectorized_launch(q, sms),
                                                    stream, where);
    else
      return g::run<g::InterfaceThreadTiled<T, Out>, T>(
          "thread_tiled", q, g::thread_tiled_launch(q, sms), stream, where);
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
