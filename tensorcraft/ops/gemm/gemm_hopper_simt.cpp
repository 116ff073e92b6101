// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/problem.hpp"

#include "tensorcraft/ops/gemm/09_wgmma.cuh"
#include "tensorcraft/ops/gemm/10_warp_specialized.cuh"
#include "tensorcraft/ops/gemm/11_persistent.cuh"
#include "tensorcraft/ops/gemm/pack.cuh"

// What the SIMT device has of the rungs on wgmma. Small results take the smallest tile.
namespace tensorcraft::kernel::gemm {
namespace {

using simt::AnyOf, simt::Types, simt::concat, simt::list;

using Halves = AnyOf<Types<f16, f16>, Types<bf16, bf16>>;
using Bf16 = AnyOf<Types<bf16, bf16>>;
using Widened = AnyOf<Types<bf16, float>>;
using Floats = AnyOf<Types<float, float>>;

constexpr std::array<Config, 4> layouts(const Config& config) {
  std::array<Config, 4> all{config, config, config, config};
  all[1].a_layout = all[2].b_layout = Layout::column_major;
  all[3].a_layout = all[3].b_layout = Layout::column_major;
  return all;
}
// C and bias, each activation once.
constexpr std::array<Config, 4> epilogues(const Config& config) {
  std::array<Config, 4> all{config, config, config, config};
  for (int i = 0; i < 4; ++i) {
    all[size_t(i)].activation = Activation(i + 1);
    all[size_t(i)].has_bias = 1;
  }
  all[3].has_c = 1;
  return all;
}
constexpr Config with(Config config, int slots, int d_vector) {
  config.slots = slots;
  config.d_vector = d_vector;
  return config;
}

constexpr Config kTogether{
    .block_m = 128, .block_n = 256, .block_k = 64, .threads = 256, .stages = 4, .consumers = 2};
constexpr auto kWgmma = layouts(with(kTogether, 0, 4));
constexpr Config specialized(Config config) {
  config.threads += kWarpgroup;
  return config;
}
constexpr auto kSpecialized = layouts(with(specialized(kTogether), 0, 4));

constexpr Config kSmall{
    .block_m = 64, .block_n = 64, .block_k = 64, .threads = 256, .stages = 8, .consumers = 1};
constexpr auto kPersistent = layouts(with(kSmall, 2, 1));
constexpr auto kPersistentEpilogues = epilogues(with(kSmall, 2, 1));
constexpr auto kPersistentOddRows = layouts(with(kSmall, 0, 1));

// Along k, as wgmma reads tf32, and with half as many elements a step.
constexpr Config along_k(int m, int n, int consumers, int slots, int parts = 1) {
  return {.block_m = m,
          .block_n = n,
          .block_k = 32,
          .threads = (consumers + 1) * kWarpgroup,
          .stages = 8,
          .consumers = consumers,
          .slots = slots,
          .parts = parts,
          .b_layout = Layout::column_major};
}
// D's rows begin at multiples of 16 bytes, and the copy engine cannot store several batch axes.
constexpr Config in_batches(Config c, int has_c = 0) {
  c.d_vector = 4;
  c.has_c = has_c;
  return c;
}
constexpr std::array kPersistentTf32{along_k(64, 64, 1, 2),  along_k(64, 64, 1, 0),
                                     along_k(128, 64, 2, 2), along_k(64, 128, 1, 2),
                                     along_k(64, 128, 1, 0), in_batches(along_k(64, 64, 1, 0))};
// A along m, in registers; also B along n, whose results are columns.
constexpr Config along_m(int slots) {
  Config c = along_k(128, 64, 2, slots);
  c.a_layout = Layout::column_major;
  return c;
}
constexpr Config in_columns(Config c) {
  c.d_layout = Layout::column_major;
  return c;
}
constexpr std::array kPersistentTf32Registers{along_m(2), along_m(0), in_columns(along_m(2))};
constexpr std::array kPackedBatches{in_batches(kPersistentOddRows[2]),
                                    in_batches(kPersistentOddRows[2], 1)};
constexpr std::array kPersistentTf32Epilogue{epilogues(kPersistentTf32[0])[1]};
// A cluster, whose blocks share the parts of A.
constexpr Config clustered() {
  Config c = along_k(192, 128, 3, 2, kTf32Parts);
  c.stages = 4;
  c.cluster_n = 2;
  return c;
}
constexpr std::array kPersistent3xtf32{along_k(64, 64, 1, 2, 2),
                                       along_k(64, 64, 1, 0, 2),
                                       along_k(128, 64, 2, 2, 2),
                                       in_batches(along_k(64, 64, 1, 0, 2), 1),
                                       along_k(64, 128, 1, 2, 2),
                                       along_k(64, 128, 1, 0, 2),
                                       clustered()};

constexpr PackConfig pack(Layout layout, int vector, int parts = 1) {
  return {.layout = layout, .vector = vector, .parts = parts};
}
template <int vector>
constexpr std::array kPack{pack(Layout::row_major, 1), pack(Layout::column_major, 1),
                           pack(Layout::row_major, vector), pack(Layout::column_major, vector)};
constexpr std::array kPackTf32Parts{pack(Layout::row_major, 1, 2), pack(Layout::column_major, 1, 2),
                                    pack(Layout::row_major, 4, 2),
                                    pack(Layout::column_major, 4, 2)};

}  // namespace

simt::OperatorInstances hopper_instances() {
  return {{"persistent",
           concat(list<Persistent, kPersistent>(Halves{}), list<Persistent, kPersistent>(Widened{}),
                  list<Persistent, kPersistentEpilogues>(Bf16{}),
                  list<Persistent, kPersistentOddRows>(Bf16{}),
                  list<Persistent, kPackedBatches>(Bf16{}))},
          {"persistent_tf32", concat(list<PersistentTf32, kPersistentTf32>(Floats{}),
                                     list<PersistentTf32, kPersistentTf32Registers>(Floats{}),
                                     list<PersistentTf32, kPersistentTf32Epilogue>(Floats{}))},
          {"persistent_3xtf32", list<Persistent3xtf32, kPersistent3xtf32>(Floats{})},
          {"pack",
           concat(list<Pack, kPack<8>>(AnyOf<Types<int16_t>>{}),
                  list<Pack, kPack<4>>(simt::Float{}), list<Pack, kPackTf32Parts>(simt::Float{}))},
          {"warp_specialized", list<WarpSpecialized, kSpecialized>(Bf16{})},
          {"wgmma", list<Wgmma, kWgmma>(Bf16{})}};
}

}  // namespace tensorcraft::kernel::gemm
