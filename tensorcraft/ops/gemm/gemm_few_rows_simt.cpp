// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/13_gemv.cuh"
#include "tensorcraft/ops/gemm/byte_instances.hpp"
#include "tensorcraft/ops/gemm/expression_instances.hpp"
#include "tensorcraft/ops/gemm/interpreted_expression.cuh"
#include "tensorcraft/ops/gemm/problem.hpp"

// What the SIMT device has of gemv.
namespace tensorcraft::kernel::gemm {
namespace {

using simt::AnyOf, simt::Types, simt::concat, simt::list;

// Types of the operands and of the result.
using Float = AnyOf<Types<float, float>>;
using Halves = AnyOf<Types<f16, f16>, Types<bf16, bf16>>;
using Bf16 = AnyOf<Types<bf16, bf16>>;
using Widened = AnyOf<Types<bf16, float>>;

// Tokens are columns of a row-major B, the rows of a column-major matrix.
constexpr Config swapped(Config c) {
  c.swap = 1;
  c.a_layout = Layout::column_major;
  return c;
}
// A single column of B is a line along k.
constexpr Config swapped_line(Config c) {
  c.swap = 1;
  c.d_vector = 1;
  return c;
}
constexpr std::array<Config, 4> epilogues(const Config& config) {
  std::array<Config, 4> all{config, config, config, config};
  all[0].has_bias = all[2].has_bias = 1;
  all[1].has_c = all[2].has_c = 1;
  all[0].activation = Activation::gelu;
  all[2].activation = Activation::silu;
  all[3].has_bias = kByRow;
  all[3].has_scales = 1;
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
constexpr std::array kAlongKSwapped{swapped_line(along_k(1, widest)),
                                    odd_row(swapped(along_k(2, widest))),
                                    swapped(along_k(4, widest))};
constexpr std::array kAlongKElements{odd_row(along_k(1, 1)), odd_row(along_k(4, 1))};

constexpr Config gated(Config c) {
  c.gated = 1;
  c.activation = Activation::silu;
  return c;
}
template <int widest>
constexpr std::array kAlongKGated{gated(along_k(1, widest)), gated(along_k(2, widest)),
                                  gated(along_k(4, widest))};
template <int widest>
constexpr std::array kAlongKGatedParts{gated(along_k(1, widest, 8, 2)),
                                       gated(along_k(4, widest, 8, 4))};
constexpr std::array kAlongKGatedElements{odd_row(gated(along_k(1, 1))),
                                          odd_row(gated(along_k(4, 1)))};

constexpr Config across_k(int tokens, int vector, int split = 1) {
  const int outputs = vector == 1 ? 32 : 8 * vector;
  return {.block_m = tokens,
          .block_n = outputs,
          .warp_m = tokens,
          .warp_n = outputs,
          .threads = 256,
          .stages = 1,
          .split = split,
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
constexpr std::array kAcrossKSwapped{swapped(across_k(4, widest)),
                                     swapped_line(across_k(1, widest))};
constexpr std::array kAcrossKElements{odd_row(across_k(1, 1)), odd_row(across_k(4, 1))};

constexpr auto kAlongKExpressions = expressions(along_k(4, 8));
constexpr auto kAcrossKExpressions = expressions(across_k(4, 8));

// Tokens that do not lie along k are read one by one, whatever an access of theirs could be.
template <const auto& configs, class Combinations>
simt::InstanceList gemv(Combinations types) {
  if constexpr (configs[0].swap)
    return list<Gemv, configs>(types, &Config::stages, &Config::a_vector);
  else
    return list<Gemv, configs>(types, &Config::stages);
}
// Single elements serve what vectors of C, bias and scales do.
template <const auto& configs, class Combinations>
simt::InstanceList epilogue_list(Combinations types) {
  return list<Gemv, configs>(types, &Config::stages, &Config::c_vector);
}
// Any expression: what else is done is read.
template <const auto& configs>
simt::InstanceList expression_list() {
  return list<Gemv, configs>(Bf16{}, &Config::stages, &Config::c_vector, &Config::activation,
                             &Config::has_c, &Config::has_scales);
}

}  // namespace

simt::OperatorInstances few_rows_instances() {
  return {
      {"gemv",
       concat(gemv<kAlongK<4>>(Float{}), gemv<kAlongK<8>>(Halves{}), gemv<kAlongK<8>>(Widened{}),
              epilogue_list<kAlongKEpilogues<4>>(Float{}),
              epilogue_list<kAlongKEpilogues<8>>(Bf16{}), expression_list<kAlongKExpressions>(),
              gemv<kAlongKParts<4>>(Float{}), gemv<kAlongKParts<8>>(Widened{}),
              gemv<kAlongKSwapped<4>>(Float{}), gemv<kAlongKSwapped<8>>(Bf16{}),
              list<Gemv, kAlongKElements>(Float{}, &Config::stages, &Config::a_vector),
              list<Gemv, kAlongKElements>(Bf16{}, &Config::stages, &Config::a_vector),
              gemv<kAlongKGated<4>>(Float{}), gemv<kAlongKGated<8>>(Bf16{}),
              gemv<kAlongKGatedParts<4>>(Float{}), gemv<kAlongKGatedParts<8>>(Widened{}),
              list<Gemv, kAlongKGatedElements>(Float{}, &Config::stages, &Config::a_vector),
              list<Gemv, kAlongKGatedElements>(Bf16{}, &Config::stages, &Config::a_vector),
              gemv<kAcrossK<4>>(Float{}), gemv<kAcrossK<8>>(Halves{}), gemv<kAcrossK<8>>(Widened{}),
              epilogue_list<kAcrossKEpilogues<4>>(Float{}),
              epilogue_list<kAcrossKEpilogues<8>>(Bf16{}), expression_list<kAcrossKExpressions>(),
              gemv<kAcrossKParts<4>>(Float{}), gemv<kAcrossKParts<8>>(Widened{}),
              gemv<kAcrossKSwapped<4>>(Float{}), gemv<kAcrossKSwapped<8>>(Bf16{}),
              list<Gemv, kAcrossKElements>(Float{}, &Config::stages, &Config::a_vector),
              list<Gemv, kAcrossKElements>(Bf16{}, &Config::stages, &Config::a_vector),
              list<Gemv, bytes::kGemv<Promotion::none>>(bytes::E4m3{}, &Config::stages,
                                                        &Config::a_vector),
              epilogue_list<bytes::kGemvScaled>(bytes::E4m3{}),
              gemv<bytes::kGemvCodes>(bytes::Codes{}),
              list<Gemv, bytes::kGemv<Promotion::by_square>>(
                  bytes::E4m3{}, &Config::stages, &Config::a_vector, &Config::promotion))}};
}

}  // namespace tensorcraft::kernel::gemm
