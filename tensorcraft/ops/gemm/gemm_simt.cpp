// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/gemm_simt.hpp"

#include "tensorcraft/ops/gemm/00_naive.cuh"
#include "tensorcraft/ops/gemm/01_coalesced.cuh"
#include "tensorcraft/ops/gemm/02_block_tiled.cuh"
#include "tensorcraft/ops/gemm/03_thread_tiled.cuh"
#include "tensorcraft/ops/gemm/04_vectorized.cuh"
#include "tensorcraft/ops/gemm/06_tensor_core.cuh"

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
constexpr auto kBlockTiledEpilogues = epilogues(kBlockTile);

constexpr Config kThreadTile{
    .block_m = 64, .block_n = 64, .block_k = 16, .thread_m = 4, .thread_n = 4, .threads = 256};
constexpr Config kLargeThreadTile{
    .block_m = 128, .block_n = 128, .block_k = 8, .thread_m = 8, .thread_n = 8, .threads = 256};
constexpr auto kThreadTiled = layouts(kThreadTile);
constexpr auto kThreadTiledEpilogues = epilogues(kThreadTile);
constexpr std::array kThreadTiledLarge{kLargeThreadTile};

// Accesses of 16 bytes, of single elements, and of what a row that ends early leaves. `widest` is
// 16 bytes of A and B.
template <int widest>
constexpr auto kVectorized = layouts(with_vectors(kThreadTile, widest, widest, 4));
template <int widest>
constexpr auto kVectorizedEpilogues = epilogues(with_vectors(kThreadTile, widest, widest, 4));
template <int widest>
constexpr auto kVectorizedOddRows = layouts(with_vectors(kThreadTile, widest, widest, 1));
template <int widest>
constexpr std::array kVectorizedLarge{with_vectors(kLargeThreadTile, widest, widest, 4)};
constexpr auto kVectorizedScalar = layouts(with_vectors(kThreadTile, 1, 1, 1));
constexpr std::array kVectorizedHalfAligned{with_vectors(kThreadTile, 4, 2, 1)};

constexpr Config tensor_core_tile(int m, int n, int warp_m, int warp_n, int threads) {
  return {.block_m = m,
          .block_n = n,
          .block_k = 32,
          .warp_m = warp_m,
          .warp_n = warp_n,
          .threads = threads};
}
constexpr Config kTensorTile = tensor_core_tile(64, 64, 32, 32, 128);
constexpr auto kTensorCore = layouts(with_vectors(kTensorTile, 8, 8, 4));
constexpr auto kTensorCoreEpilogues = epilogues(with_vectors(kTensorTile, 8, 8, 4));
constexpr auto kTensorCoreOddRows = layouts(with_vectors(kTensorTile, 8, 8, 1));
constexpr auto kTensorCoreScalar = layouts(with_vectors(kTensorTile, 1, 1, 1));
constexpr std::array kTensorCoreHalfAligned{with_vectors(kTensorTile, 4, 2, 1)};
constexpr std::array kTensorCoreLarge{
    with_vectors(tensor_core_tile(128, 256, 64, 64, 256), 8, 8, 4),
    with_vectors(tensor_core_tile(128, 128, 64, 64, 128), 8, 8, 4),
    with_vectors(tensor_core_tile(64, 128, 32, 64, 128), 8, 8, 4)};

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
  return simt::concat(instances<Params, kBlockTiled>(All{}, rung),
                      instances<Params, kBlockTiledEpilogues>(Same{}, rung));
}

InstanceList thread_tiled_instances() {
  const auto rung = []<class T, class Out, Config C>(const Params& p) {
    thread_tiled<T, Out, C>(p);
  };
  return simt::concat(instances<Params, kThreadTiled>(All{}, rung),
                      instances<Params, kThreadTiledEpilogues>(Same{}, rung),
                      instances<Params, kThreadTiledLarge>(Same{}, rung));
}

InstanceList vectorized_instances() {
  const auto rung = []<class T, class Out, Config C>(const Params& p) { vectorized<T, Out, C>(p); };
  return simt::concat(instances<Params, kVectorized<4>>(Float{}, rung),
                      instances<Params, kVectorized<8>>(Halves{}, rung),
                      instances<Params, kVectorized<8>>(Widened{}, rung),
                      instances<Params, kVectorizedEpilogues<4>>(Float{}, rung),
                      instances<Params, kVectorizedEpilogues<8>>(Halves{}, rung),
                      instances<Params, kVectorizedOddRows<4>>(Float{}, rung),
                      instances<Params, kVectorizedOddRows<8>>(Bf16{}, rung),
                      instances<Params, kVectorizedLarge<4>>(Float{}, rung),
                      instances<Params, kVectorizedLarge<8>>(Halves{}, rung),
                      instances<Params, kVectorizedScalar>(Same{}, rung),
                      instances<Params, kVectorizedHalfAligned>(Halves{}, rung));
}

InstanceList tensor_core_instances() {
  const auto rung = []<class T, class Out, Config C>(const Params& p) {
    tensor_core<T, Out, C>(p);
  };
  return simt::concat(instances<Params, kTensorCore>(Halves{}, rung),
                      instances<Params, kTensorCore>(Widened{}, rung),
                      instances<Params, kTensorCoreEpilogues>(Halves{}, rung),
                      instances<Params, kTensorCoreOddRows>(Halves{}, rung),
                      instances<Params, kTensorCoreScalar>(Halves{}, rung),
                      instances<Params, kTensorCoreHalfAligned>(Halves{}, rung),
                      instances<Params, kTensorCoreLarge>(Bf16{}, rung));
}

}  // namespace tensorcraft::kernel::gemm
