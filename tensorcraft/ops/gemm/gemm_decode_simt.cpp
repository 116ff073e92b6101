// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/13_gemv.cuh"
#include "tensorcraft/ops/gemm/14_skinny.cuh"
#include "tensorcraft/ops/gemm/problem.hpp"

#include <utility>

namespace tensorcraft::kernel::gemm {
namespace {

using simt::AnyOf, simt::Types, simt::concat, simt::list;

// Types of the operands and of the result.
using Float = AnyOf<Types<float, float>>;
using Halves = AnyOf<Types<f16, f16>, Types<bf16, bf16>>;
using Bf16 = AnyOf<Types<bf16, bf16>>;
using Widened = AnyOf<Types<bf16, float>>;

constexpr Config exchanged(Config c) {
  c.exchanged = 1;
  std::swap(c.block_m, c.block_n);
  std::swap(c.warp_m, c.warp_n);
  std::swap(c.a_vector, c.b_vector);
  // Weights along k are rows of A, and tokens are columns of a row-major B.
  c.a_layout = c.b_layout == Layout::column_major ? Layout::row_major : Layout::column_major;
  c.b_layout = Layout::row_major;
  return c;
}
// A single column of B is a line along k.
constexpr Config exchanged_line(const Config& of) {
  Config c = exchanged(of);
  c.b_layout = Layout::column_major;
  c.d_vector = 1;
  return c;
}
constexpr std::array<Config, 3> epilogues(const Config& config) {
  std::array<Config, 3> all{config, config, config};
  all[0].has_bias = all[2].has_bias = 1;
  all[1].has_c = all[2].has_c = 1;
  all[0].activation = Activation::gelu;
  all[2].activation = Activation::silu;
  return all;
}
constexpr Config odd_row(Config c) {
  c.d_vector = 1;
  return c;
}

// gemv with weights along k; vector: the elements of an access.
constexpr Config along_k(int tokens, int vector, int warps_k = 1, int split = 1) {
  const int lines = tokens == 1 ? 2 : 4;
  return {.block_m = tokens,
          .block_n = 8 / warps_k * lines,
          .warp_m = tokens,
          .warp_n = lines,
          .threads = 256,
          .stages = 2,
          .split = split,
          .warps_k = warps_k,
          .b_layout = Layout::column_major,
          .a_vector = vector,
          .b_vector = vector,
          .d_vector = 4};
}
template <int widest>
constexpr std::array kAlongK{along_k(1, widest), along_k(2, widest), along_k(4, widest)};
template <int widest>
constexpr std::array kAlongKEpilogues = epilogues(along_k(4, widest));
template <int widest>
constexpr std::array kAlongKParts{along_k(1, widest, 8, 2), along_k(4, widest, 8, 4)};
template <int widest>
constexpr std::array kAlongKExchanged{exchanged_line(along_k(1, widest)),
                                      odd_row(exchanged(along_k(2, widest))),
                                      exchanged(along_k(4, widest))};
constexpr std::array kAlongKElements{odd_row(along_k(1, 1)), odd_row(along_k(4, 1))};

constexpr Config across_k(int tokens, int vector, int split = 1) {
  const int outputs = vector == 1 ? 32 : 8 * vector;
  return {.block_m = tokens,
          .block_n = outputs,
          .warp_m = tokens,
          .warp_n = outputs,
          .threads = 256,
          .stages = 1,
          .split = split,
          .warps_k = 8,
          .a_vector = vector,
          .b_vector = vector,
          .d_vector = 4};
}
template <int widest>
constexpr std::array kAcrossK{across_k(1, widest), across_k(2, widest), across_k(4, widest)};
template <int widest>
constexpr std::array kAcrossKEpilogues = epilogues(across_k(4, widest));
template <int widest>
constexpr std::array kAcrossKParts{across_k(1, widest, 2), across_k(4, widest, 4),
                                   across_k(1, widest, 8)};
template <int widest>
constexpr std::array kAcrossKExchanged{exchanged(across_k(4, widest)),
                                       exchanged_line(across_k(1, widest))};
constexpr std::array kAcrossKElements{odd_row(across_k(1, 1)), odd_row(across_k(4, 1))};

constexpr Config skinny(int tokens, int outputs = 64, int split = 1) {
  return {.block_m = tokens,
          .block_n = outputs,
          .block_k = 64,
          .warp_m = tokens,
          .warp_n = outputs / 4,
          .threads = 160,
          .stages = 3,
          .split = split,
          .b_layout = Layout::column_major,
          .d_vector = 4};
}
constexpr Config with_layouts(Config c, Layout a, Layout b) {
  c.a_layout = a;
  c.b_layout = b;
  return c;
}
constexpr std::array<Config, 3> other_layouts(const Config& c) {
  constexpr Layout row = Layout::row_major, column = Layout::column_major;
  return {with_layouts(c, row, row), with_layouts(c, column, row), with_layouts(c, column, column)};
}
constexpr std::array kSkinny{skinny(16), skinny(32), skinny(64)};
constexpr auto kSkinnyLayouts = other_layouts(skinny(16));
constexpr auto kSkinnyEpilogues = epilogues(skinny(16));
constexpr std::array kSkinnyOddRow{odd_row(skinny(16))};
constexpr std::array kSkinnyParts{skinny(16, 64, 2), skinny(64, 64, 4), skinny(16, 64, 8)};
constexpr std::array kSkinnyLarge{skinny(16, 128), skinny(32, 128), skinny(64, 128)};
constexpr std::array kSkinnyExchanged{
    exchanged(skinny(16)), exchanged(skinny(64)),
    with_layouts(exchanged(skinny(16)), Layout::row_major, Layout::column_major),
    with_layouts(exchanged(skinny(16)), Layout::column_major, Layout::row_major)};
constexpr std::array kSkinnyExchangedParts{exchanged(skinny(16, 64, 4))};

// Tokens that do not lie along k are read one by one, whatever an access of theirs could be.
template <const auto& configs, class Combinations>
simt::InstanceList gemv(Combinations types) {
  if constexpr (configs[0].exchanged)
    return list<Gemv, configs>(types, &Config::stages, &Config::b_vector);
  else
    return list<Gemv, configs>(types, &Config::stages);
}
// A ring of fewer stages fits where more do.
template <const auto& configs, class Combinations>
simt::InstanceList skinny(Combinations types) {
  return list<Skinny, configs>(types, &Config::stages);
}

}  // namespace

simt::OperatorInstances decode_instances() {
  return {
      {"gemv",
       concat(gemv<kAlongK<4>>(Float{}), gemv<kAlongK<8>>(Halves{}), gemv<kAlongK<8>>(Widened{}),
              gemv<kAlongKEpilogues<4>>(Float{}), gemv<kAlongKEpilogues<8>>(Bf16{}),
              gemv<kAlongKParts<4>>(Float{}), gemv<kAlongKParts<8>>(Widened{}),
              gemv<kAlongKExchanged<4>>(Float{}), gemv<kAlongKExchanged<8>>(Bf16{}),
              list<Gemv, kAlongKElements>(Float{}, &Config::stages, &Config::a_vector),
              list<Gemv, kAlongKElements>(Bf16{}, &Config::stages, &Config::a_vector),
              gemv<kAcrossK<4>>(Float{}), gemv<kAcrossK<8>>(Halves{}), gemv<kAcrossK<8>>(Widened{}),
              gemv<kAcrossKEpilogues<4>>(Float{}), gemv<kAcrossKEpilogues<8>>(Bf16{}),
              gemv<kAcrossKParts<4>>(Float{}), gemv<kAcrossKParts<8>>(Widened{}),
              gemv<kAcrossKExchanged<4>>(Float{}), gemv<kAcrossKExchanged<8>>(Bf16{}),
              list<Gemv, kAcrossKElements>(Float{}, &Config::stages, &Config::a_vector),
              list<Gemv, kAcrossKElements>(Bf16{}, &Config::stages, &Config::a_vector))},
      {"skinny",
       concat(skinny<kSkinny>(Halves{}), skinny<kSkinny>(Widened{}), skinny<kSkinnyLayouts>(Bf16{}),
              skinny<kSkinnyEpilogues>(Bf16{}), skinny<kSkinnyOddRow>(Bf16{}),
              skinny<kSkinnyParts>(Widened{}), skinny<kSkinnyLarge>(Bf16{}),
              skinny<kSkinnyExchanged>(Bf16{}), skinny<kSkinnyExchangedParts>(Widened{}))}};
}

}  // namespace tensorcraft::kernel::gemm
