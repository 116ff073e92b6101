// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/gemm_simt.hpp"

#include "tensorcraft/ops/gemm/00_naive.cuh"
#include "tensorcraft/ops/gemm/01_coalesced.cuh"
#include "tensorcraft/ops/gemm/02_block_tiled.cuh"
#include "tensorcraft/ops/gemm/03_thread_tiled.cuh"
#include "tensorcraft/ops/gemm/04_vectorized.cuh"
#include "tensorcraft/ops/gemm/05_async.cuh"
#include "tensorcraft/ops/gemm/06_tensor_core.cuh"
#include "tensorcraft/ops/gemm/07_swizzled.cuh"
#include "tensorcraft/ops/gemm/08_tma.cuh"

namespace tensorcraft::kernel::gemm {
namespace {

using simt::AnyOf, simt::Types, simt::InstanceList, simt::instances;

// Types of the operands and of the result.
using Float = AnyOf<Types<float, float>>;
using Halves = AnyOf<Types<f16, f16>, Types<bf16, bf16>>;
using Widened = AnyOf<Types<f16, float>, Types<bf16, float>>;
using Bf16 = AnyOf<Types<bf16, bf16>>;
using Same = AnyOf<Types<float, float>, Types<f16, f16>, Types<bf16, bf16>>;
using All = AnyOf<Types<float, float>, Types<f16, f16>, Types<f16, float>, Types<bf16, bf16>,
                  Types<bf16, float>>;

// The same Config with every epilogue there is.
constexpr std::array<Config, 20> every_epilogue(const Config& config) {
  std::array<Config, 20> all;
  for (int i = 0; i < 20; ++i) {
    all[size_t(i)] = config;
    all[size_t(i)].activation = Activation(i / 4);
    all[size_t(i)].has_c = i / 2 % 2;
    all[size_t(i)].has_bias = i % 2;
  }
  return all;
}

// Each activation, and C and bias with and without the other.
constexpr std::array<Config, 6> epilogues(const Config& config) {
  std::array<Config, 6> all{config, config, config, config, config, config};
  for (int i = 0; i < 4; ++i) all[size_t(i)].activation = Activation(i + 1);
  all[0].has_bias = all[1].has_bias = all[2].has_bias = all[3].has_bias = 1;
  all[3].has_c = all[4].has_c = 1;
  all[5].has_bias = 1;
  return all;
}

constexpr std::array<Config, 4> layouts(const Config& config) {
  std::array<Config, 4> all{config, config, config, config};
  all[1].a_layout = all[2].b_layout = Layout::column_major;
  all[3].a_layout = all[3].b_layout = Layout::column_major;
  return all;
}
// Where only the epilogue is new to the others.
constexpr std::array<Config, 2> two_layouts(const Config& config) {
  return {layouts(config)[0], layouts(config)[3]};
}
// Rows of D that vectors do not divide, beside operands that they do.
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
constexpr auto kNaive = every_epilogue({.block_m = 32, .block_n = 8, .threads = 256});
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

// A panel is copied 16 bytes at a time where its operand's unit stride is not along k.
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
constexpr auto kTensorCoreEpilogues = epilogues(with_vectors(kTensorTile, 8, 8, 4));
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
constexpr auto kSwizzledEpilogues = epilogues(with_vectors(kSwizzledTile, 8, 8, 4));
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

constexpr Config kTmaTile = with_vectors(warp_tile(128, 128, 64, 64, 64, 128, 3), 1, 1, 4);
constexpr auto kTma = layouts(kTmaTile);
constexpr auto kTmaOddRows = layouts(with_vectors(kTmaTile, 1, 1, 1));
constexpr auto kTmaEpilogues = epilogues(kTmaTile);
constexpr auto kTmaLarge = layouts(with_vectors(warp_tile(256, 128, 64, 64, 64, 256, 4), 1, 1, 4));

}  // namespace

// The rungs for any strides read no layout, and any epilogue must run on the first of them.
InstanceList naive_instances() {
  const auto rung = []<class T, class Out, Config C>(const Params& p) { naive<T, Out, C>(p); };
  return instances<Params, kNaive>(All{}, rung, &Config::a_layout, &Config::b_layout);
}

InstanceList coalesced_instances() {
  const auto rung = []<class T, class Out, Config C>(const Params& p) { coalesced<T, Out, C>(p); };
  return simt::concat(
      instances<Params, kCoalesced>(All{}, rung, &Config::a_layout, &Config::b_layout),
      instances<Params, kCoalescedEpilogues>(Same{}, rung, &Config::a_layout, &Config::b_layout));
}

InstanceList block_tiled_instances() {
  const auto rung = []<class T, class Out, Config C>(const Params& p) {
    block_tiled<T, Out, C>(p);
  };
  return simt::concat(instances<Params, kBlockTiled>(Same{}, rung),
                      instances<Params, kBlockTiledWidened>(Widened{}, rung),
                      instances<Params, kBlockTiledEpilogues>(Same{}, rung));
}

InstanceList thread_tiled_instances() {
  const auto rung = []<class T, class Out, Config C>(const Params& p) {
    thread_tiled<T, Out, C>(p);
  };
  return simt::concat(instances<Params, kThreadTiled>(Same{}, rung),
                      instances<Params, kThreadTiledWidened>(Widened{}, rung),
                      instances<Params, kThreadTiledEpilogues>(Same{}, rung),
                      instances<Params, kThreadTiledLarge>(Same{}, rung));
}

InstanceList vectorized_instances() {
  const auto rung = []<class T, class Out, Config C>(const Params& p) { vectorized<T, Out, C>(p); };
  return simt::concat(instances<Params, kVectorized<4>>(Float{}, rung),
                      instances<Params, kVectorized<8>>(Halves{}, rung),
                      instances<Params, kVectorizedWidened>(Widened{}, rung),
                      instances<Params, kVectorizedEpilogues<4>>(Float{}, rung),
                      instances<Params, kVectorizedEpilogues<8>>(Halves{}, rung),
                      instances<Params, kVectorizedOddRows<4>>(Float{}, rung),
                      instances<Params, kVectorizedOddRows<8>>(Bf16{}, rung),
                      instances<Params, kVectorizedLarge<4>>(Float{}, rung),
                      instances<Params, kVectorizedLarge<8>>(Halves{}, rung),
                      instances<Params, kVectorizedScalar>(Same{}, rung),
                      instances<Params, kVectorizedHalfAligned>(Halves{}, rung));
}

InstanceList async_instances() {
  const auto rung = []<class T, class Out, Config C>(const Params& p) { async<T, Out, C>(p); };
  return simt::concat(instances<Params, kAsync>(Float{}, rung),
                      instances<Params, kAsyncScalar>(Float{}, rung),
                      instances<Params, kAsyncEpilogues>(Float{}, rung),
                      instances<Params, kAsyncLarge>(Float{}, rung));
}

InstanceList tensor_core_tf32_instances() {
  const auto rung = []<class T, class Out, Config C>(const Params& p) {
    tensor_core_tf32<T, Out, C>(p);
  };
  return simt::concat(instances<Params, kTensorCoreTf32>(Float{}, rung),
                      instances<Params, kTensorCoreTf32Scalar>(Float{}, rung),
                      instances<Params, kTensorCoreTf32Epilogue>(Float{}, rung));
}

InstanceList swizzled_instances() {
  const auto rung = []<class T, class Out, Config C>(const Params& p) { swizzled<T, Out, C>(p); };
  return simt::concat(instances<Params, kSwizzled>(Halves{}, rung),
                      instances<Params, kSwizzledWidened>(Widened{}, rung),
                      instances<Params, kSwizzledEpilogues>(Halves{}, rung),
                      instances<Params, kSwizzledOddRows>(Bf16{}, rung),
                      instances<Params, kSwizzledScalar>(Halves{}, rung),
                      instances<Params, kSwizzledLarge>(Bf16{}, rung));
}

InstanceList swizzled_tf32_instances() {
  const auto rung = []<class T, class Out, Config C>(const Params& p) {
    swizzled_tf32<T, Out, C>(p);
  };
  return simt::concat(instances<Params, kSwizzledTf32>(Float{}, rung),
                      instances<Params, kSwizzledTf32Epilogue>(Float{}, rung));
}

InstanceList tma_instances() {
  const auto rung = []<class T, class Out, Config C>(const TmaParams& p) { tma<T, Out, C>(p); };
  return simt::concat(instances<TmaParams, kTma>(Halves{}, rung),
                      instances<TmaParams, kTma>(AnyOf<Types<bf16, float>>{}, rung),
                      instances<TmaParams, kTmaEpilogues>(Bf16{}, rung),
                      instances<TmaParams, kTmaOddRows>(Bf16{}, rung),
                      instances<TmaParams, kTmaLarge>(Bf16{}, rung));
}

InstanceList tensor_core_instances() {
  const auto rung = []<class T, class Out, Config C>(const Params& p) {
    tensor_core<T, Out, C>(p);
  };
  return simt::concat(instances<Params, kTensorCore>(Halves{}, rung),
                      instances<Params, kTensorCoreWidened>(Widened{}, rung),
                      instances<Params, kTensorCoreEpilogues>(Halves{}, rung),
                      instances<Params, kTensorCoreOddRows>(Halves{}, rung),
                      instances<Params, kTensorCoreScalar>(Halves{}, rung),
                      instances<Params, kTensorCoreHalfAligned>(Halves{}, rung),
                      instances<Params, kTensorCoreLarge>(Bf16{}, rung));
}

}  // namespace tensorcraft::kernel::gemm
