// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/ops/quantize/00_naive.cuh"
#include "tensorcraft/ops/quantize/01_in_registers.cuh"
#include "tensorcraft/ops/quantize/dequantize.cuh"
#include "tensorcraft/ops/quantize/plan.h"

// Quantisation with a scale for a row or for 128 elements of a row, and back. Compiled for each T
// and Q: in_registers for aligned rows of the widths of kRegisterRows (18 kernels) and for aligned
// blocks (1), dequantize for aligned rows (9); naive for the rest.
namespace tensorcraft::kernels {
namespace detail::quantize {

using namespace kernel::quantize;

template <class T>
constexpr auto kTiles = [] {
  constexpr int kVector = 16 / int(sizeof(T));
  std::array<Instance<Config>, kRegisterRows.size() + 1> all{};
  for (size_t i = 0; i < kRegisterRows.size(); ++i) {
    const auto [threads, group, slots] = op::split_rows(kRegisterRows[i], kVector);
    all[i].config = {.threads = threads, .group = group, .vector = kVector, .slots = slots};
  }
  all.back().config = {.group = int(kBlock) / (4 * kVector), .vector = kVector, .slots = 4};
  return all;
}();
template <class T>
constexpr auto kVectors = [] {
  std::array<Instance<Config>, 9> all{};
  for (int i = 0; i < 9; ++i)
    all[size_t(i)].config = {.group = 1 << i, .vector = 16 / int(sizeof(T)), .slots = 4};
  return all;
}();
inline constexpr std::array kAny{Instance<Config>{}};

template <class T, class Q>
std::string_view quantize_tiles(const char* launcher, const T* in, Q* out, float* scales,
                                const Tiles& tiles, bool power_of_two, cudaStream_t stream,
                                DebugInfo where) {
  if (tiles.rows == 0 || tiles.cols == 0) return {};
  validate_arrays(launcher, {{"in", in}, {"out", out}, {"scales", scales}});
  CallParams p = contiguous_params(in, out, scales, tiles);
  p.power_of_two = power_of_two;
  return launch_ladder(kQuantizeRungs, p, Given{.wide_bytes = sizeof(T)}, stream, where,
                       Kernels<InRegisters, kTiles<T>, T, Q>{"in_registers"},
                       Kernels<Naive, kAny, T, Q>{"naive"});
}

template <class Q, class T>
std::string_view dequantize_tiles(const char* launcher, const Q* in, const float* scales, T* out,
                                  const Tiles& tiles, cudaStream_t stream, DebugInfo where) {
  if (tiles.rows == 0 || tiles.cols == 0) return {};
  validate_arrays(launcher, {{"in", in}, {"scales", scales}, {"out", out}});
  CallParams p = contiguous_params(in, out, const_cast<float*>(scales), tiles);
  p.given = 1;
  return launch_ladder(kDequantizeRungs, p, Given{.wide_bytes = sizeof(T), .dequantizes = true},
                       stream, where,
                       Kernels<DequantizeVectorized, kVectors<T>, Q, T>{"vectorized"},
                       Kernels<DequantizeNaive, kAny, Q, T>{"naive"});
}

// Sizes are checked before tiles are made of them.
inline Tiles checked_tiles(const char* launcher, int64_t rows, int64_t cols, bool blocks,
                           bool column) {
  validate_sizes(launcher, {{"rows", rows}, {"cols", cols}});
  return blocks ? block_tiles(rows, cols, column) : token_tiles(rows, cols);
}

}  // namespace detail::quantize

// out = in / scale for each of `rows` rows of `cols` elements, one after another; scales [rows]
// are amax / 448, 57344 or 127. T: float, f16 or bf16; Q: e4m3, e5m2 or int8_t. Returns the name of
// the variant, empty if there is nothing to do. Errors and stream as launch_softmax.
template <class T, class Q>
std::string_view launch_quantize_tokens(const T* in, Q* out, float* scales, int64_t rows,
                                        int64_t cols, bool power_of_two = false,
                                        cudaStream_t stream = nullptr, DebugInfo where = {}) {
  constexpr const char* kLauncher = "launch_quantize_tokens";
  const auto tiles = detail::quantize::checked_tiles(kLauncher, rows, cols, false, false);
  return detail::quantize::quantize_tiles(kLauncher, in, out, scales, tiles, power_of_two, stream,
                                          where);
}

// The same with a scale for each 128 elements of a row: [rows, blocks], or if `column` [blocks,
// rows rounded up to 4], 0 after the last row.
template <class T, class Q>
std::string_view launch_quantize_blocks(const T* in, Q* out, float* scales, int64_t rows,
                                        int64_t cols, bool column = false,
                                        bool power_of_two = false, cudaStream_t stream = nullptr,
                                        DebugInfo where = {}) {
  constexpr const char* kLauncher = "launch_quantize_blocks";
  const auto tiles = detail::quantize::checked_tiles(kLauncher, rows, cols, true, column);
  return detail::quantize::quantize_tiles(kLauncher, in, out, scales, tiles, power_of_two, stream,
                                          where);
}

// out = in * scale, with scales as the launchers above leave them.
template <class Q, class T>
std::string_view launch_dequantize_tokens(const Q* in, const float* scales, T* out, int64_t rows,
                                          int64_t cols, cudaStream_t stream = nullptr,
                                          DebugInfo where = {}) {
  constexpr const char* kLauncher = "launch_dequantize_tokens";
  const auto tiles = detail::quantize::checked_tiles(kLauncher, rows, cols, false, false);
  return detail::quantize::dequantize_tiles(kLauncher, in, scales, out, tiles, stream, where);
}
template <class Q, class T>
std::string_view launch_dequantize_blocks(const Q* in, const float* scales, T* out, int64_t rows,
                                          int64_t cols, bool column = false,
                                          cudaStream_t stream = nullptr, DebugInfo where = {}) {
  constexpr const char* kLauncher = "launch_dequantize_blocks";
  const auto tiles = detail::quantize::checked_tiles(kLauncher, rows, cols, true, column);
  return detail::quantize::dequantize_tiles(kLauncher, in, scales, out, tiles, stream, where);
}

}  // namespace tensorcraft::kernels
