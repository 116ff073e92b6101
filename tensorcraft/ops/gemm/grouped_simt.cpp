// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/problem.hpp"

#include "tensorcraft/ops/gemm/00_naive.cuh"
#include "tensorcraft/ops/gemm/05_async.cuh"
#include "tensorcraft/ops/gemm/06_tensor_core.cuh"
#include "tensorcraft/ops/gemm/07_swizzled.cuh"
#include "tensorcraft/ops/gemm/11_persistent.cuh"
#include "tensorcraft/ops/gemm/byte_instances.hpp"
#include "tensorcraft/ops/gemm/group_ranges.cuh"

// What the SIMT device has of grouped products.
namespace tensorcraft::kernel::gemm {
namespace {

using simt::AnyOf, simt::Types, simt::concat, simt::list;

using Float = AnyOf<Types<float, float>>;
using Bf16 = AnyOf<Types<bf16, bf16>>;
using Halves = AnyOf<Types<f16, f16>, Types<bf16, bf16>>;
using Widened = AnyOf<Types<bf16, float>>;
using All = AnyOf<Types<float, float>, Types<f16, f16>, Types<f16, float>, Types<bf16, bf16>,
                  Types<bf16, float>, Types<f16, bf16>, Types<bf16, f16>>;
// naive has all of float8 too.
using Every = AnyOf<Types<float, float>, Types<f16, f16>, Types<f16, float>, Types<bf16, bf16>,
                    Types<bf16, float>, Types<f16, bf16>, Types<bf16, f16>, Types<e4m3, bf16>,
                    Types<e4m3, f16>, Types<e4m3, float>, Types<e5m2, bf16>, Types<e5m2, f16>,
                    Types<e5m2, float>>;

constexpr std::array<Config, 5> every_activation(Config c) {
  std::array<Config, 5> all{c, c, c, c, c};
  for (int i = 0; i < 5; ++i) all[size_t(i)].activation = Activation(i);
  return all;
}
constexpr std::array<Config, 3> every_gate(Config c) {
  c.gated = 1;
  std::array<Config, 3> all{c, c, c};
  all[0].activation = Activation::silu;
  all[1].activation = Activation::gelu;
  all[2].activation = Activation::gelu_tanh;
  return all;
}
// B as rows and as columns.
constexpr std::array<Config, 2> layouts(Config c) {
  std::array<Config, 2> all{c, c};
  all[1].b_layout = Layout::column_major;
  return all;
}
constexpr Config with_vectors(Config c, int operands, int d) {
  c.a_vector = c.b_vector = operands;
  c.d_vector = d;
  return c;
}

// Scales that are not there have a null address.
constexpr Config kNaiveTile{
    .block_m = 32, .block_n = 8, .threads = 256, .has_scales = 1, .has_groups = 1};
constexpr Config kGatedNaiveTile{
    .block_m = 32, .block_n = 16, .threads = 256, .has_scales = 1, .has_groups = 1};
constexpr auto kNaive = every_activation(kNaiveTile);
constexpr auto kNaiveGates = every_gate(kGatedNaiveTile);

// Groups along k, of operands that are not.
template <size_t kSize>
constexpr std::array<Config, kSize> along_k(std::array<Config, kSize> all) {
  for (Config& c : all) {
    c.has_groups = kGroupsOfK;
    c.a_layout = Layout::column_major;
    c.b_layout = Layout::row_major;
  }
  return all;
}
constexpr auto kNaiveAlongK = along_k(kNaive);

constexpr Config kAsyncTile{.block_m = 32,
                            .block_n = 64,
                            .block_k = 16,
                            .warp_m = 32,
                            .warp_n = 16,
                            .thread_m = 4,
                            .thread_n = 4,
                            .threads = 128,
                            .stages = 4,
                            .has_groups = 1};
constexpr std::array<Config, 2> async_layouts(Config c) {
  std::array<Config, 2> all{c, c};
  all[0].b_vector = 4;
  all[1].b_layout = Layout::column_major;
  return all;
}
constexpr auto kAsync = async_layouts(with_vectors(kAsyncTile, 1, 4));
constexpr auto kAsyncOddRows = async_layouts(with_vectors(kAsyncTile, 1, 1));

constexpr Config warp_tile(int m, int n, int k, int stages) {
  return {.block_m = m,
          .block_n = n,
          .block_k = k,
          .warp_m = m / 2,
          .warp_n = 32,
          .threads = 128,
          .stages = stages,
          .has_groups = 1};
}
constexpr Config kTensorTile = warp_tile(64, 64, 32, 1);
constexpr auto kTensorCore = layouts(with_vectors(kTensorTile, 8, 4));
constexpr auto kTensorCoreScalar = layouts(with_vectors(kTensorTile, 1, 1));
constexpr auto kTensorCoreTf32 = layouts(with_vectors(warp_tile(64, 64, 16, 1), 4, 4));
constexpr Config kSwizzledTile = warp_tile(32, 64, 64, 4);
constexpr auto kSwizzled = layouts(with_vectors(kSwizzledTile, 8, 4));
constexpr auto kSwizzledOddRows = layouts(with_vectors(kSwizzledTile, 8, 1));
constexpr std::array kSwizzledActivation{
    every_activation(with_vectors(kSwizzledTile, 8, 4))[size_t(Activation::gelu)]};
constexpr std::array kSwizzledGate{every_gate(with_vectors(kSwizzledTile, 8, 4))[0]};
constexpr auto kSwizzledTf32 = layouts(with_vectors(warp_tile(32, 64, 16, 5), 4, 4));
constexpr auto kSwizzledTf32OddRows = layouts(with_vectors(warp_tile(32, 64, 16, 5), 4, 1));

constexpr std::array kAsyncAlongK = along_k(std::array{with_vectors(kAsyncTile, 4, 4)});
constexpr std::array kTensorCoreAlongK =
    along_k(std::array{with_vectors(kTensorTile, 8, 4), with_vectors(kTensorTile, 1, 1)});
constexpr std::array kTensorCoreTf32AlongK =
    along_k(std::array{with_vectors(warp_tile(64, 64, 16, 1), 4, 4)});
constexpr std::array kSwizzledAlongK = along_k(std::array{with_vectors(kSwizzledTile, 8, 4)});
constexpr std::array kSwizzledTf32AlongK =
    along_k(std::array{with_vectors(warp_tile(32, 64, 16, 5), 4, 4)});

constexpr Config one_consumer(int n, int stages, int slots, int d_vector) {
  return {.block_m = 64,
          .block_n = n,
          .block_k = 64,
          .threads = 256,
          .stages = stages,
          .consumers = 1,
          .slots = slots,
          .d_vector = d_vector,
          .has_groups = 1};
}
// With the roles of rows and columns exchanged.
constexpr std::array<Config, 2> swapped(Config c) {
  c.swap = 1;
  std::array<Config, 2> all{c, c};
  all[0].a_layout = all[0].b_layout = Layout::column_major;
  all[1].b_layout = Layout::column_major;
  return all;
}
constexpr auto kPersistent = layouts(one_consumer(64, 10, kEngineSlots, 4));
constexpr std::array kPersistentOddRows{layouts(one_consumer(64, 10, kByRows, 1))[1]};
// Consumers take turns, alone and in clusters.
constexpr std::array<Config, 2> in_turns(Config c) {
  c.block_m = c.block_n = 128;
  c.threads = 384;
  c.consumers = 2;
  c.schedule = Schedule::ping_pong;
  c.b_layout = Layout::column_major;
  std::array<Config, 2> all{c, c};
  all[1].cluster_m = 2;
  return all;
}
constexpr auto kPersistentTurns = in_turns(one_consumer(128, 5, kEngineSlots, 4));
// Both operands along k, and as many bytes of them a step.
constexpr std::array<Config, 2> tf32(int n, int stages, bool swap) {
  std::array<Config, 2> all{one_consumer(n, stages, kEngineSlots, 4),
                            one_consumer(n, stages, kByRows, 1)};
  for (Config& c : all) {
    c.block_k = 32;
    c.b_layout = Layout::column_major;
    c.swap = swap;
  }
  return all;
}
constexpr auto kPersistentTf32 = tf32(64, 10, false);
constexpr auto kPersistentTf32FewRows = tf32(16, 16, true);
constexpr auto kPersistentFewRows = swapped(one_consumer(16, 16, kEngineSlots, 4));

// Of 8-bit operands.
template <size_t kSize>
constexpr std::array<Config, kSize> of_groups(std::array<Config, kSize> all) {
  for (Config& c : all) c.has_groups = kGroupsOfRows;
  return all;
}
constexpr Config byte_tile(int slots, int d_vector, Promotion promotion) {
  return bytes::along_k(64, 64, 10, slots, d_vector, promotion);
}
// Rows have the roles of columns.
constexpr Config few_bytes(int rows, int stages, int slots, int d_vector, Promotion promotion) {
  return bytes::swapped(bytes::along_k(64, rows, stages, slots, d_vector, promotion));
}
constexpr auto kPersistentBytes = of_groups(std::array{
    byte_tile(kEngineSlots, 4, Promotion::plain), byte_tile(kEngineSlots, 4, Promotion::by_column),
    byte_tile(kEngineSlots, 4, Promotion::by_square), byte_tile(kByRows, 1, Promotion::by_column),
    byte_tile(kByRows, 1, Promotion::by_square),
    bytes::scaled(byte_tile(kByRows, 4, Promotion::plain)),
    bytes::gated(bytes::scaled(byte_tile(kByRows, 4, Promotion::plain))),
    few_bytes(32, 14, kEngineSlots, 4, Promotion::plain),
    few_bytes(32, 14, kByRows, 1, Promotion::plain),
    bytes::scaled(few_bytes(32, 14, kByRows, 4, Promotion::plain)),
    few_bytes(16, 16, kEngineSlots, 4, Promotion::plain),
    few_bytes(16, 16, kEngineSlots, 4, Promotion::by_square),
    few_bytes(16, 16, kByRows, 1, Promotion::by_square),
    bytes::along_k(128, 160, 5, kEngineSlots, 4, Promotion::by_square)});
constexpr auto kPersistentWideBytes =
    of_groups(std::array{byte_tile(kEngineSlots, 4, Promotion::by_square)});
constexpr auto kSwizzledBytes =
    of_groups(std::array{bytes::warp_tile(16, 4, Promotion::plain),
                         bytes::scaled(bytes::warp_tile(16, 4, Promotion::plain))});

}  // namespace

simt::OperatorInstances grouped_instances() {
  return {
      {"naive", concat(list<Naive, kNaive>(Every{}, &Config::a_layout, &Config::b_layout,
                                           &Config::has_scales),
                       list<Naive, kNaiveGates>(Every{}, &Config::a_layout, &Config::b_layout,
                                                &Config::has_scales),
                       list<Naive, kNaiveAlongK>(All{}, &Config::a_layout, &Config::b_layout,
                                                 &Config::has_scales))},
      {"async", concat(list<Async, kAsync>(Float{}), list<Async, kAsyncOddRows>(Float{}),
                       list<Async, kAsyncAlongK>(Float{}))},
      {"tensor_core",
       concat(list<TensorCore, kTensorCore>(Halves{}), list<TensorCore, kTensorCoreScalar>(Bf16{}),
              list<TensorCore, kTensorCoreAlongK>(Bf16{}))},
      {"tensor_core_tf32", concat(list<TensorCoreTf32, kTensorCoreTf32>(Float{}),
                                  list<TensorCoreTf32, kTensorCoreTf32AlongK>(Float{}))},
      {"swizzled",
       concat(list<Swizzled, kSwizzled>(Halves{}), list<Swizzled, kSwizzled>(Widened{}),
              list<Swizzled, kSwizzledOddRows>(Bf16{}), list<Swizzled, kSwizzledActivation>(Bf16{}),
              list<Swizzled, kSwizzledGate>(Bf16{}), list<Swizzled, kSwizzledAlongK>(Halves{}),
              list<Swizzled, kSwizzledAlongK>(Widened{}),
              list<Swizzled, kSwizzledBytes>(bytes::E4m3{}))},
      {"swizzled_tf32", concat(list<SwizzledTf32, kSwizzledTf32>(Float{}),
                               list<SwizzledTf32, kSwizzledTf32OddRows>(Float{}),
                               list<SwizzledTf32, kSwizzledTf32AlongK>(Float{}))},
      {"persistent",
       concat(list<Persistent, kPersistent>(Halves{}), list<Persistent, kPersistent>(Widened{}),
              list<Persistent, kPersistentOddRows>(Bf16{}),
              list<Persistent, kPersistentFewRows>(Bf16{}),
              list<Persistent, kPersistentTurns>(Bf16{}),
              list<Persistent, kPersistentBytes>(bytes::E4m3{}),
              list<Persistent, kPersistentWideBytes>(bytes::Wide{}))},
      {"persistent_tf32", concat(list<PersistentTf32, kPersistentTf32>(Float{}),
                                 list<PersistentTf32, kPersistentTf32FewRows>(Float{}))},
      {"group_ranges",
       list<GroupRanges, simt::kDefaultConfig<GroupRangesConfig>>(AnyOf<Types<>>{})}};
}

}  // namespace tensorcraft::kernel::gemm
