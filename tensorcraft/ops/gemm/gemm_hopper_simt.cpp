// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/problem.hpp"

#include "tensorcraft/ops/gemm/09_wgmma.cuh"
#include "tensorcraft/ops/gemm/10_warp_specialized.cuh"
#include "tensorcraft/ops/gemm/11_persistent.cuh"
#include "tensorcraft/ops/gemm/12_split_k.cuh"
#include "tensorcraft/ops/gemm/byte_instances.hpp"
#include "tensorcraft/ops/gemm/expression_instances.hpp"
#include "tensorcraft/ops/gemm/interpreted_expression.cuh"
#include "tensorcraft/ops/gemm/line_sums.cuh"
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

constexpr Config one_consumer(int n, int stages) {
  return {
      .block_m = 64, .block_n = n, .block_k = 64, .threads = 256, .stages = stages, .consumers = 1};
}
constexpr Config swapped(Config config) {
  config.swap = 1;
  return config;
}
constexpr Config in_two(Config config) {
  config.split = 2;
  return config;
}
constexpr Config kSmall = one_consumer(64, 10);
constexpr auto kPersistent = layouts(with(kSmall, 2, 1));
constexpr auto kPersistentEpilogues = epilogues(with(kSmall, kByRows, 4));
constexpr auto kPersistentOddRows = layouts(with(kSmall, kByRows, 1));
constexpr auto kPersistentCodes = layouts(with(kSmall, kByRows, 4));
// B as rows, of which half a tile is a whole box, and as columns.
constexpr std::array<Config, 2> gates(int d_vector) {
  std::array<Config, 2> all{with(one_consumer(128, 8), kByRows, d_vector),
                            with(kSmall, kByRows, d_vector)};
  all[1].b_layout = Layout::column_major;
  for (Config& c : all) {
    c.gated = 1;
    c.activation = Activation::silu;
  }
  return all;
}
constexpr auto kPersistentGates = gates(4);
constexpr auto kPersistentOddGates = gates(1);
// What the cases of the conformance test take of split_k.
constexpr auto kAllSplit = layouts(in_two(with(kSmall, 0, 4)));
constexpr std::array kSplit{kAllSplit[1], kAllSplit[2], kAllSplit[3]};
constexpr auto kAllSplitOddRows = layouts(in_two(with(kSmall, 0, 1)));
constexpr std::array kSplitOddRows{kAllSplitOddRows[0], kAllSplitOddRows[3]};
// Few rows of A are columns of its transpose. B as columns, with an epilogue, and as rows.
constexpr std::array<Config, 2> few_rows(Config config) {
  config.b_layout = Layout::column_major;
  std::array<Config, 2> all{config, config};
  all[0].activation = Activation::gelu;
  all[0].has_bias = 1;
  all[1].a_layout = Layout::column_major;
  return all;
}
constexpr Config kFew = swapped(one_consumer(16, 16));
constexpr std::array kFewRows{few_rows(with(kFew, kByRows, 4))[0],
                              few_rows(with(kFew, kEngineSlots, 1))[1]};
constexpr auto kFewOddRows = few_rows(with(kFew, kByRows, 1));
constexpr auto kSplitFewRows = few_rows(in_two(with(kFew, 0, 4)));

constexpr auto kPersistentExpressions = expressions(with(kSmall, kByRows, 4));
constexpr std::array kPersistentExpressionByRow{kPersistentExpressions[0]};
constexpr std::array kPersistentExpression{kPersistentExpressions[1]};
constexpr std::array kSplitExpression{expressions(in_two(with(kSmall, 0, 4)))[1]};
template <class Rung, const auto& kConfigs, class... Member>
simt::InstanceList expression_list(Member... any) {
  return list<Rung, kConfigs>(Bf16{}, &Config::activation, &Config::has_c, &Config::has_scales,
                              &Config::c_vector, any...);
}
// Along k, as wgmma reads tf32, and with half as many elements a step.
constexpr Config along_k(int m, int n, int stages, int slots, int parts = 1) {
  const int consumers = m / kGroupRows;
  return {.block_m = m,
          .block_n = n,
          .block_k = 32,
          .threads = (consumers + 1) * kWarpgroup,
          .stages = stages,
          .consumers = consumers,
          .slots = slots,
          .parts = parts,
          .b_layout = Layout::column_major};
}
// D's rows begin at multiples of 16 bytes, and the copy engine cannot store several batch axes.
constexpr Config in_batches(Config c, int has_c = 0) {
  c.slots = kByRows;
  c.d_vector = 4;
  c.has_c = has_c;
  return c;
}
constexpr std::array kPersistentTf32{along_k(64, 64, 10, 2),
                                     along_k(64, 64, 10, kByRows),
                                     along_k(64, 96, 8, 2),
                                     along_k(64, 96, 8, kByRows),
                                     swapped(along_k(64, 16, 16, 2)),
                                     in_batches(along_k(64, 16, 16, 2)),
                                     epilogues(with(along_k(64, 64, 10, 2), kByRows, 4))[1]};
// The operand that has block_m along m or n, in registers.
constexpr Config in_registers(Config c) {
  c.a_layout = Layout::column_major;
  return c;
}
constexpr auto kRegisters = in_registers(along_k(128, 128, 6, 2));
constexpr std::array kPersistentTf32Registers{kRegisters, swapped(kRegisters),
                                              epilogues(with(kRegisters, kByRows, 4))[1]};
constexpr Config packed_halves() {
  Config c = one_consumer(16, 16);
  c.b_layout = Layout::column_major;
  return in_batches(c);
}
constexpr std::array kPackedBatches{packed_halves()};
constexpr std::array kPersistent3xtf32{along_k(64, 64, 10, 2, 2), along_k(64, 64, 10, kByRows, 2),
                                       along_k(64, 96, 8, 2, 2), along_k(64, 96, 8, kByRows, 2),
                                       in_batches(along_k(64, 64, 10, 2, 2), 1)};

constexpr PackConfig pack(Layout layout, int vector, int parts = 1) {
  return {.layout = layout, .vector = vector, .parts = parts};
}
template <int vector>
constexpr std::array kPack{pack(Layout::row_major, 1), pack(Layout::column_major, 1),
                           pack(Layout::row_major, vector), pack(Layout::column_major, vector)};
constexpr std::array kPackTf32Parts{pack(Layout::row_major, 1, 2), pack(Layout::column_major, 1, 2),
                                    pack(Layout::row_major, 4, 2),
                                    pack(Layout::column_major, 4, 2)};

// Of 8-bit operands.
simt::InstanceList persistent_bytes() {
  using namespace bytes;
  return concat(
      list<Persistent, kEngine>(E4m3{}), list<Persistent, kRows>(E4m3{}),
      list<Persistent, kAligned>(E4m3{}, &Config::c_vector),
      list<Persistent, bytes::kFewRows>(E4m3{}), list<Persistent, bytes::kFewOddRows>(E4m3{}),
      list<Persistent, kTwoConsumers>(E4m3{}), list<Persistent, kScaled>(E4m3{}, &Config::c_vector),
      list<Persistent, kWide>(Wide{}), list<Persistent, kInt8Sums>(Sums{}),
      list<Persistent, kInt8SumsOfZeros>(Sums{}),
      list<Persistent, kInt8>(Int8{}, &Config::c_vector),
      list<Persistent, kCodes>(Codes{}, &Config::c_vector),
      list<Persistent, kInt8Codes>(CodesOfInt8{}),
      list<Persistent, kPersistentCodes>(CodesOfBf16{}));
}
simt::InstanceList split_bytes() {
  using namespace bytes;
  return concat(list<SplitK, bytes::kSplit>(E4m3{}), list<SplitK, bytes::kSplitOddRows>(E4m3{}),
                list<SplitK, kScaledSplit>(E4m3{}, &Config::c_vector),
                list<SplitK, kInt8SplitSums>(Sums{}), list<SplitK, kSplitCodes>(Codes{}));
}

}  // namespace

simt::OperatorInstances hopper_instances() {
  return {
      {"persistent",
       concat(list<Persistent, kPersistent>(Halves{}), list<Persistent, kPersistent>(Widened{}),
              list<Persistent, kPersistentEpilogues>(Bf16{}, &Config::c_vector),
              expression_list<Persistent, kPersistentExpressionByRow>(),
              expression_list<Persistent, kPersistentExpression>(&Config::has_bias),
              list<Persistent, kPersistentOddRows>(Bf16{}),
              list<Persistent, kPersistentGates>(Bf16{}),
              list<Persistent, kPersistentOddGates>(Bf16{}),
              list<Persistent, kFewRows>(Bf16{}, &Config::c_vector),
              list<Persistent, kFewOddRows>(Bf16{}, &Config::c_vector),
              list<Persistent, kPackedBatches>(Bf16{}), persistent_bytes())},
      {"split_k", concat(split_bytes(), list<SplitK, kSplit>(Bf16{}),
                         expression_list<SplitK, kSplitExpression>(&Config::has_bias),
                         list<SplitK, kSplitOddRows>(Bf16{}),
                         list<SplitK, kSplitFewRows>(Bf16{}, &Config::c_vector))},
      {"persistent_tf32",
       concat(list<PersistentTf32, kPersistentTf32>(Floats{}, &Config::c_vector),
              list<PersistentTf32, kPersistentTf32Registers>(Floats{}, &Config::c_vector))},
      {"persistent_3xtf32", list<Persistent3xtf32, kPersistent3xtf32>(Floats{}, &Config::c_vector)},
      {"pack",
       concat(list<Pack, kPack<8>>(AnyOf<Types<int16_t>>{}), list<Pack, kPack<4>>(simt::Float{}),
              list<Pack, kPackTf32Parts>(simt::Float{}),
              list<Pack, bytes::kPack>(AnyOf<Types<uint8_t>>{}))},
      {"line_sums", list<LineSums, simt::kDefaultConfig<LineSumsConfig>>(AnyOf<Types<>>{})},
      {"warp_specialized", concat(list<WarpSpecialized, kSpecialized>(Bf16{}),
                                  list<WarpSpecialized, bytes::kOneTile>(bytes::E4m3{}),
                                  list<WarpSpecialized, bytes::kOneTileCodes>(bytes::Codes{}))},
      {"wgmma",
       concat(list<Wgmma, kWgmma>(Bf16{}), list<Wgmma, bytes::kOneTileAlone>(bytes::E4m3{}),
              list<Wgmma, bytes::kOneTileAloneCodes>(bytes::Codes{}))}};
}

}  // namespace tensorcraft::kernel::gemm
