// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/problem.hpp"

#include "tensorcraft/ops/gemm/00_naive.cuh"
#include "tensorcraft/ops/gemm/01_coalesced.cuh"
#include "tensorcraft/ops/gemm/02_block_tiled.cuh"
#include "tensorcraft/ops/gemm/03_thread_tiled.cuh"
#include "tensorcraft/ops/gemm/04_vectorized.cuh"
#include "tensorcraft/ops/gemm/05_async.cuh"
#include "tensorcraft/ops/gemm/06_tensor_core.cuh"
#include "tensorcraft/ops/gemm/07_swizzled.cuh"
#include "tensorcraft/ops/gemm/08_tma.cuh"
#include "tensorcraft/ops/gemm/byte_instances.hpp"
#include "tensorcraft/ops/gemm/interpreted_expression.cuh"

#include <algorithm>
#include <iterator>

namespace tensorcraft::kernel::gemm {
namespace {

using simt::AnyOf, simt::Types, simt::concat, simt::list;

// Types of the operands and of the result.
using Float = AnyOf<Types<float, float>>;
using Halves = AnyOf<Types<f16, f16>, Types<bf16, bf16>>;
using Widened = AnyOf<Types<f16, float>, Types<bf16, float>>;
using Bf16 = AnyOf<Types<bf16, bf16>>;
using Same = AnyOf<Types<float, float>, Types<f16, f16>, Types<bf16, bf16>>;
using Crossed = AnyOf<Types<f16, bf16>, Types<bf16, f16>>;
using All = AnyOf<Types<float, float>, Types<f16, f16>, Types<f16, float>, Types<bf16, bf16>,
                  Types<bf16, float>, Types<f16, bf16>, Types<bf16, f16>>;

// naive has all of 8 bits too, but int32 results, which nothing is done to.
using Every =
    AnyOf<Types<float, float>, Types<f16, f16>, Types<f16, float>, Types<bf16, bf16>,
          Types<bf16, float>, Types<f16, bf16>, Types<bf16, f16>, Types<e4m3, bf16>,
          Types<e4m3, f16>, Types<e4m3, float>, Types<e5m2, bf16>, Types<e5m2, f16>,
          Types<e5m2, float>, Types<int8_t, bf16>, Types<int8_t, f16>, Types<int8_t, float>>;

// The same of results of 8 bits.
using EveryCode =
    AnyOf<Types<e4m3, e4m3>, Types<e4m3, e5m2>, Types<e5m2, e4m3>, Types<e5m2, e5m2>,
          Types<int8_t, int8_t>, Types<float, e4m3>, Types<float, e5m2>, Types<float, int8_t>,
          Types<f16, e4m3>, Types<f16, e5m2>, Types<f16, int8_t>, Types<bf16, e4m3>,
          Types<bf16, e5m2>, Types<bf16, int8_t>>;

// The same Config with each activation, a bias by row or by column, and everything else of which a
// null address is none.
constexpr std::array<Config, 5> every_activation(Config config, int has_bias) {
  std::array<Config, 5> all;
  config.has_bias = has_bias;
  config.has_c = config.has_scales = 1;
  for (int i = 0; i < 5; ++i) {
    all[size_t(i)] = config;
    all[size_t(i)].activation = Activation(i);
  }
  return all;
}
// The same, gated.
constexpr std::array<Config, 3> every_gate(Config config, int has_bias) {
  std::array<Config, 3> all;
  config.block_n *= 2;
  config.gated = config.has_scales = 1;
  config.has_bias = has_bias;
  constexpr Activation kGates[] = {Activation::silu, Activation::gelu, Activation::gelu_tanh};
  for (int i = 0; i < 3; ++i) {
    all[size_t(i)] = config;
    all[size_t(i)].activation = kGates[i];
  }
  return all;
}

// Each activation, and C and bias with and without the other, in accesses as wide as those of D.
constexpr std::array<Config, 7> epilogues(Config config) {
  config.c_vector = config.d_vector;
  std::array<Config, 7> all{config, config, config, config, config, config, config};
  for (int i = 0; i < 4; ++i) all[size_t(i)].activation = Activation(i + 1);
  all[0].has_bias = all[1].has_bias = all[2].has_bias = all[3].has_bias = 1;
  all[3].has_c = all[4].has_c = 1;
  all[5].has_bias = 1;
  all[6].has_bias = kByRow;
  all[6].has_scales = 1;
  return all;
}
// Gated products in two layouts, one of them with everything that fits beside the gate. Single
// elements serve vectors too.
constexpr std::array<Config, 4> gates(Config config) {
  config.gated = 1;
  config.activation = Activation::silu;
  std::array<Config, 4> all{config, config, config, config};
  all[1].b_layout = Layout::column_major;
  all[2].activation = Activation::gelu_tanh;
  all[2].has_bias = kByColumn;
  all[2].has_scales = 1;
  all[2].c_vector = config.d_vector;
  all[3].activation = Activation::gelu;
  all[3].a_layout = Layout::column_major;
  return all;
}

// Any expression after all this, without and with a gate. The activation is read, C and scales are
// none if their addresses are null, and single elements serve vectors too.
constexpr std::array<Config, 2> expressions(Config config, int has_bias, int gated_block_n) {
  config.expression = Expression::interpreted;
  config.has_c = config.has_scales = 1;
  config.has_bias = has_bias;
  std::array<Config, 2> all{config, config};
  all[1].gated = 1;
  all[1].has_c = 0;
  all[1].block_n = gated_block_n;
  return all;
}
// The lists of both: that by column serves no bias too. naive has all, the others a gate by column
// alone.
template <class Rung, const auto& kByRows, const auto& kByColumns, class Dtypes, class... Member>
simt::InstanceList expression_list(Dtypes dtypes, Member... any) {
  return concat(
      list<Rung, kByRows>(dtypes, &Config::activation, &Config::has_c, &Config::has_scales,
                          &Config::c_vector, any...),
      list<Rung, kByColumns>(dtypes, &Config::activation, &Config::has_c, &Config::has_scales,
                             &Config::c_vector, &Config::has_bias, any...));
}

constexpr std::array<Config, 4> layouts(const Config& config) {
  std::array<Config, 4> all{config, config, config, config};
  all[1].a_layout = all[2].b_layout = Layout::column_major;
  all[3].a_layout = all[3].b_layout = Layout::column_major;
  return all;
}
// If only the epilogue is new to the others.
constexpr std::array<Config, 2> two_layouts(const Config& config) {
  return {layouts(config)[0], layouts(config)[3]};
}
// Rows of D that vectors do not divide, beside operands that they do divide.
constexpr std::array<Config, 1> odd_rows(Config config) {
  config.b_layout = Layout::column_major;
  config.d_vector = 1;
  return {config};
}

constexpr Config with_vectors(Config config, int a, int b, int d) {
  config.a_vector = a;
  config.b_vector = b;
  config.d_vector = d;
  return config;
}

constexpr Config kCoalescedTile{.block_m = 8, .block_n = 32, .threads = 256};
constexpr Config kNaiveTile{.block_m = 32, .block_n = 8, .threads = 256};
constexpr std::array kNaiveSums{every_activation(kNaiveTile, 0)[0]};
constexpr auto kNaiveByRow = every_activation(kNaiveTile, kByRow);
constexpr auto kNaive = every_activation(kNaiveTile, kByColumn);
constexpr auto kNaiveGatesByRow = every_gate(kNaiveTile, kByRow);
constexpr auto kNaiveGates = every_gate(kNaiveTile, kByColumn);
constexpr auto kNaiveExpressionsByRow = expressions(kNaiveTile, kByRow, 16);
constexpr auto kNaiveExpressions = expressions(kNaiveTile, kByColumn, 16);
constexpr std::array kCoalesced{kCoalescedTile};
constexpr auto kCoalescedEpilogues = epilogues(kCoalescedTile);

constexpr Config kBlockTile{.block_m = 32, .block_n = 32, .block_k = 32, .threads = 256};
constexpr auto kBlockTiled = layouts(kBlockTile);
constexpr auto kBlockTiledWidened = two_layouts(kBlockTile);
constexpr auto kBlockTiledEpilogues = epilogues(kBlockTile);

constexpr Config kThreadTile{
    .block_m = 64, .block_n = 64, .block_k = 16, .thread_m = 4, .thread_n = 4, .threads = 256};
constexpr Config kLargeThreadTile{
    .block_m = 128, .block_n = 128, .block_k = 8, .thread_m = 8, .thread_n = 8, .threads = 256};
constexpr auto kThreadTiled = layouts(kThreadTile);
constexpr auto kThreadTiledWidened = two_layouts(kThreadTile);
constexpr auto kThreadTiledEpilogues = epilogues(kThreadTile);
constexpr std::array kThreadTiledLarge{kLargeThreadTile};

// Accesses of 16 bytes, of single elements, and of what a row that ends early leaves. `widest` is
// 16 bytes of A and B.
template <int widest>
constexpr auto kVectorized = layouts(with_vectors(kThreadTile, widest, widest, 4));
constexpr auto kVectorizedWidened = two_layouts(with_vectors(kThreadTile, 8, 8, 4));
template <int widest>
constexpr auto kVectorizedEpilogues = epilogues(with_vectors(kThreadTile, widest, widest, 4));
template <int widest>
constexpr auto kVectorizedOddRows = odd_rows(with_vectors(kThreadTile, widest, widest, 1));
template <int widest>
constexpr std::array kVectorizedLarge{with_vectors(kLargeThreadTile, widest, widest, 4)};
constexpr auto kVectorizedScalar = layouts(with_vectors(kThreadTile, 1, 1, 1));
constexpr std::array kVectorizedHalfAligned{with_vectors(kThreadTile, 4, 2, 1)};

// A panel is copied 16 bytes at a time if its operand's unit stride is not along k.
constexpr std::array<Config, 4> async_layouts(const Config& config, int vector, int d_vector) {
  std::array<Config, 4> all = layouts(config);
  for (Config& c : all)
    c = with_vectors(c, c.a_layout == Layout::row_major ? 1 : vector,
                     c.b_layout == Layout::row_major ? vector : 1, d_vector);
  return all;
}
constexpr Config async_tile(int m, int n, int k, int thread_m, int thread_n, int threads,
                            int stages = 4) {
  return {.block_m = m,
          .block_n = n,
          .block_k = k,
          .warp_m = thread_m * 8,
          .warp_n = thread_n * 4,
          .thread_m = thread_m,
          .thread_n = thread_n,
          .threads = threads,
          .stages = stages,
          .b_vector = 4,
          .d_vector = 4};
}
constexpr Config kAsyncTile = async_tile(32, 64, 16, 4, 4, 128);
constexpr auto kAsync = async_layouts(kAsyncTile, 4, 4);
constexpr auto kAsyncScalar = async_layouts(kAsyncTile, 1, 1);
constexpr auto kAsyncEpilogues = epilogues(kAsyncTile);
constexpr std::array kAsyncLarge{async_tile(128, 128, 16, 8, 8, 256, 3),
                                 async_tile(64, 128, 16, 8, 8, 128),
                                 async_tile(64, 64, 16, 8, 4, 128)};

constexpr Config warp_tile(int m, int n, int k, int warp_m, int warp_n, int threads,
                           int stages = 1) {
  return {.block_m = m,
          .block_n = n,
          .block_k = k,
          .warp_m = warp_m,
          .warp_n = warp_n,
          .threads = threads,
          .stages = stages};
}
// The same with accesses of 16 bytes everywhere.
constexpr Config wide_warp_tile(int m, int n, int k, int warp_m, int warp_n, int threads,
                                int stages = 1) {
  return with_vectors(warp_tile(m, n, k, warp_m, warp_n, threads, stages), 8, 8, 4);
}
constexpr Config kTensorTile = warp_tile(64, 64, 32, 32, 32, 128);
constexpr auto kTensorCore = layouts(with_vectors(kTensorTile, 8, 8, 4));
constexpr auto kTensorCoreWidened = two_layouts(with_vectors(kTensorTile, 8, 8, 4));
constexpr std::array kTensorCoreCrossed{kTensorCore[0]};
constexpr auto kTensorCoreEpilogues = epilogues(with_vectors(kTensorTile, 8, 8, 4));
constexpr auto kTensorCoreGates = gates(with_vectors(kTensorTile, 8, 8, 4));
constexpr std::array kTensorCoreScalarGate{gates(with_vectors(kTensorTile, 1, 1, 1))[0]};
constexpr std::array kTensorCoreExpressionByRow{
    expressions(with_vectors(kTensorTile, 8, 8, 4), kByRow, 64)[0]};
constexpr auto kTensorCoreExpressions =
    expressions(with_vectors(kTensorTile, 8, 8, 4), kByColumn, 64);
constexpr auto kTensorCoreOddRows = odd_rows(with_vectors(kTensorTile, 8, 8, 1));
constexpr auto kTensorCoreScalar = layouts(with_vectors(kTensorTile, 1, 1, 1));
constexpr std::array kTensorCoreHalfAligned{with_vectors(kTensorTile, 4, 2, 1)};
constexpr std::array kTensorCoreLarge{wide_warp_tile(128, 256, 32, 64, 64, 256),
                                      wide_warp_tile(128, 128, 32, 64, 64, 128),
                                      wide_warp_tile(64, 128, 32, 32, 64, 128)};
// Two operands of 4 bytes: half the step along k.
constexpr Config kTensorTf32Tile = warp_tile(64, 64, 16, 32, 32, 128);
constexpr auto kTensorCoreTf32 = layouts(with_vectors(kTensorTf32Tile, 4, 4, 4));
constexpr auto kTensorCoreTf32Scalar = odd_rows(with_vectors(kTensorTf32Tile, 1, 1, 1));
constexpr std::array kTensorCoreTf32Epilogue{epilogues(with_vectors(kTensorTf32Tile, 4, 4, 4))[1]};

constexpr Config kSwizzledTile = warp_tile(32, 64, 64, 16, 32, 128, 4);
constexpr auto kSwizzled = layouts(with_vectors(kSwizzledTile, 8, 8, 4));
constexpr auto kSwizzledWidened = two_layouts(with_vectors(kSwizzledTile, 8, 8, 4));
constexpr std::array kSwizzledCrossed{kSwizzled[0]};
constexpr auto kSwizzledEpilogues = epilogues(with_vectors(kSwizzledTile, 8, 8, 4));
constexpr auto kSwizzledGates = gates(with_vectors(kSwizzledTile, 8, 8, 4));
constexpr std::array kSwizzledExpressionByRow{
    expressions(with_vectors(kSwizzledTile, 8, 8, 4), kByRow, 64)[0]};
constexpr auto kSwizzledExpressions =
    expressions(with_vectors(kSwizzledTile, 8, 8, 4), kByColumn, 64);
constexpr auto kSwizzledOddRows = odd_rows(with_vectors(kSwizzledTile, 8, 8, 1));
constexpr auto kSwizzledScalar = layouts(with_vectors(kSwizzledTile, 1, 1, 1));
constexpr std::array kSwizzledLarge{
    wide_warp_tile(256, 128, 64, 64, 64, 256, 4), wide_warp_tile(128, 128, 64, 64, 64, 128, 3),
    wide_warp_tile(64, 256, 64, 64, 64, 128, 2),  wide_warp_tile(128, 64, 64, 64, 32, 128, 4),
    wide_warp_tile(64, 128, 64, 32, 64, 128, 4),  wide_warp_tile(64, 64, 64, 32, 32, 128, 4),
    wide_warp_tile(32, 128, 64, 32, 32, 128, 4)};
constexpr Config kSwizzledTf32Tile = warp_tile(32, 64, 16, 16, 32, 128, 5);
constexpr auto kSwizzledTf32 = layouts(with_vectors(kSwizzledTf32Tile, 4, 4, 4));
constexpr std::array kSwizzledTf32Epilogue{epilogues(with_vectors(kSwizzledTf32Tile, 4, 4, 4))[1]};

constexpr Config pair_of(Config config) {
  config.cluster_n = kTmaCluster;
  return config;
}
constexpr Config kTmaTile = pair_of(with_vectors(warp_tile(128, 128, 64, 64, 64, 128, 3), 1, 1, 4));
constexpr auto kTma = layouts(kTmaTile);
constexpr auto kTmaOddRows = layouts(with_vectors(kTmaTile, 1, 1, 1));
constexpr auto kTmaEpilogues = epilogues(kTmaTile);
constexpr auto kTmaGates = gates(kTmaTile);
constexpr std::array kTmaExpressionByRow{expressions(kTmaTile, kByRow, 128)[0]};
constexpr auto kTmaExpressions = expressions(kTmaTile, kByColumn, 128);
constexpr auto kTmaLarge =
    layouts(pair_of(with_vectors(warp_tile(256, 128, 64, 64, 64, 256, 4), 1, 1, 4)));

template <class Combinations>
simt::InstanceList naive(Combinations types) {
  return concat(list<Naive, kNaiveByRow>(types, &Config::a_layout, &Config::b_layout,
                                         &Config::has_c, &Config::has_scales),
                list<Naive, kNaive>(types, &Config::a_layout, &Config::b_layout, &Config::has_c,
                                    &Config::has_scales, &Config::has_bias),
                list<Naive, kNaiveGatesByRow>(types, &Config::a_layout, &Config::b_layout,
                                              &Config::has_scales),
                list<Naive, kNaiveGates>(types, &Config::a_layout, &Config::b_layout,
                                         &Config::has_scales, &Config::has_bias),
                expression_list<Naive, kNaiveExpressionsByRow, kNaiveExpressions>(
                    types, &Config::a_layout, &Config::b_layout));
}

}  // namespace

// The rungs for any strides read no layout, and any epilogue must run on the first of them.
simt::OperatorInstances instances() {
  simt::OperatorInstances all = hopper_instances();
  std::ranges::move(few_rows_instances(), std::back_inserter(all));
  std::ranges::move(grouped_instances(), std::back_inserter(all));
  simt::OperatorInstances others{
      {"naive", concat(naive(Every{}), naive(EveryCode{}),
                       list<Naive, kNaiveSums>(bytes::Sums{}, &Config::a_layout, &Config::b_layout,
                                               &Config::has_c, &Config::has_scales))},
      {"coalesced",
       concat(list<Coalesced, kCoalesced>(All{}, &Config::a_layout, &Config::b_layout),
              list<Coalesced, kCoalescedEpilogues>(Same{}, &Config::a_layout, &Config::b_layout))},
      {"block_tiled", concat(list<BlockTiled, kBlockTiled>(Same{}),
                             list<BlockTiled, kBlockTiledWidened>(Widened{}),
                             list<BlockTiled, kBlockTiledEpilogues>(Same{}))},
      {"thread_tiled", concat(list<ThreadTiled, kThreadTiled>(Same{}),
                              list<ThreadTiled, kThreadTiledWidened>(Widened{}),
                              list<ThreadTiled, kThreadTiledEpilogues>(Same{}),
                              list<ThreadTiled, kThreadTiledLarge>(Same{}))},
      {"vectorized",
       concat(list<Vectorized, kVectorized<4>>(Float{}), list<Vectorized, kVectorized<8>>(Halves{}),
              list<Vectorized, kVectorizedWidened>(Widened{}),
              list<Vectorized, kVectorizedEpilogues<4>>(Float{}),
              list<Vectorized, kVectorizedEpilogues<8>>(Halves{}),
              list<Vectorized, kVectorizedOddRows<4>>(Float{}),
              list<Vectorized, kVectorizedOddRows<8>>(Bf16{}),
              list<Vectorized, kVectorizedLarge<4>>(Float{}),
              list<Vectorized, kVectorizedLarge<8>>(Halves{}),
              list<Vectorized, kVectorizedScalar>(Same{}),
              list<Vectorized, kVectorizedHalfAligned>(Halves{}))},
      {"async", concat(list<Async, kAsync>(Float{}), list<Async, kAsyncScalar>(Float{}),
                       list<Async, kAsyncEpilogues>(Float{}), list<Async, kAsyncLarge>(Float{}))},
      {"tensor_core_tf32", concat(list<TensorCoreTf32, kTensorCoreTf32>(Float{}),
                                  list<TensorCoreTf32, kTensorCoreTf32Scalar>(Float{}),
                                  list<TensorCoreTf32, kTensorCoreTf32Epilogue>(Float{}))},
      {"swizzled",
       concat(list<Swizzled, kSwizzled>(Halves{}), list<Swizzled, kSwizzledWidened>(Widened{}),
              list<Swizzled, kSwizzledEpilogues>(Halves{}),
              list<Swizzled, kSwizzledGates>(Halves{}), list<Swizzled, kSwizzledCrossed>(Crossed{}),
              expression_list<Swizzled, kSwizzledExpressionByRow, kSwizzledExpressions>(Bf16{}),
              list<Swizzled, kSwizzledOddRows>(Bf16{}), list<Swizzled, kSwizzledScalar>(Halves{}),
              list<Swizzled, kSwizzledLarge>(Bf16{}), list<Swizzled, bytes::kWarps>(bytes::E4m3{}),
              list<Swizzled, bytes::kWarps>(bytes::E5m2{}),
              list<Swizzled, bytes::kWarpsScaled>(bytes::E4m3{}, &Config::c_vector),
              list<Swizzled, bytes::kWarpSums>(bytes::Sums{}),
              list<Swizzled, bytes::kWarpCodes>(bytes::Codes{}),
              list<Swizzled, bytes::kInt8Warps>(bytes::Int8{}, &Config::c_vector))},
      {"swizzled_tf32", concat(list<SwizzledTf32, kSwizzledTf32>(Float{}),
                               list<SwizzledTf32, kSwizzledTf32Epilogue>(Float{}))},
      {"tma", concat(list<Tma, kTma>(Halves{}), list<Tma, kTma>(AnyOf<Types<bf16, float>>{}),
                     list<Tma, kTmaEpilogues>(Bf16{}), list<Tma, kTmaGates>(Bf16{}),
                     expression_list<Tma, kTmaExpressionByRow, kTmaExpressions>(Bf16{}),
                     list<Tma, kTmaOddRows>(Bf16{}), list<Tma, kTmaLarge>(Bf16{}))},
      {"tensor_core",
       concat(
           list<TensorCore, kTensorCore>(Halves{}), list<TensorCore, kTensorCoreWidened>(Widened{}),
           list<TensorCore, kTensorCoreEpilogues>(Halves{}),
           list<TensorCore, kTensorCoreGates>(Halves{}),
           list<TensorCore, kTensorCoreScalarGate>(Bf16{}),
           list<TensorCore, kTensorCoreCrossed>(Crossed{}),
           expression_list<TensorCore, kTensorCoreExpressionByRow, kTensorCoreExpressions>(Bf16{}),
           list<TensorCore, kTensorCoreOddRows>(Halves{}),
           list<TensorCore, kTensorCoreScalar>(Halves{}),
           list<TensorCore, kTensorCoreHalfAligned>(Halves{}),
           list<TensorCore, kTensorCoreLarge>(Bf16{}))}};
  all.insert(all.end(), std::make_move_iterator(others.begin()),
             std::make_move_iterator(others.end()));
  return all;
}

}  // namespace tensorcraft::kernel::gemm
