// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/norm/problem.hpp"

#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/op/row_plan.h"
#include "tensorcraft/ops/norm/00_naive.cuh"
#include "tensorcraft/ops/norm/01_block.cuh"
#include "tensorcraft/ops/norm/02_vectorized.cuh"
#include "tensorcraft/ops/norm/03_in_registers.cuh"
#include "tensorcraft/ops/norm/04_staged.cuh"
#include "tensorcraft/ops/norm/05_persistent.cuh"
#include "tensorcraft/ops/norm/06_quantized.cuh"
#include "tensorcraft/ops/norm/07_quantized_in_registers.cuh"

#include <algorithm>
#include <array>

namespace tensorcraft::kernel::norm {
namespace {

using simt::AnyOf, simt::Types, simt::concat, simt::list;

// Types of x and of the weights; without any it is that of x.
using Float = AnyOf<Types<float, float>>;
using Bf16 = AnyOf<Types<bf16, bf16>>;
using Halves = AnyOf<Types<f16, f16>, Types<bf16, bf16>>;
using Same = AnyOf<Types<float, float>, Types<f16, f16>, Types<bf16, bf16>>;
using FloatWeights = AnyOf<Types<f16, float>, Types<bf16, float>>;
using All = simt::FloatsAndWider;
// Those of x, of the weights and of the codes.
template <class Code>
using CodesOf = AnyOf<Types<float, float, Code>, Types<f16, f16, Code>, Types<f16, float, Code>,
                      Types<bf16, bf16, Code>, Types<bf16, float, Code>>;
using FloatCodes = AnyOf<Types<float, float, e4m3>>;
using HalfCodes = AnyOf<Types<bf16, bf16, int8_t>>;

constexpr Config residual(Config config) {
  config.has_residual = 1;
  return config;
}
constexpr Config nested(Config config) {
  config.nested = 1;
  return config;
}
constexpr Config affine(Config config, bool weight = true, bool bias = true) {
  config.has_weight = weight;
  config.has_bias = bias;
  return config;
}
constexpr Config activated(Config config, Activation activation) {
  config.activation = activation;
  return config;
}
constexpr Config with_vector(Config config, int vector) {
  config.vector = vector;
  return config;
}
// What rms has of it.
constexpr Config rms(Config config) {
  config = activated(affine(config, config.has_weight, false), Activation::none);
  config.form = Form::rms;
  return config;
}

template <size_t n, size_t m>
constexpr std::array<Config, n + m> joined(const std::array<Config, n>& a,
                                           const std::array<Config, m>& b) {
  std::array<Config, n + m> all;
  std::copy(b.begin(), b.end(), std::copy(a.begin(), a.end(), all.begin()));
  return all;
}
// Of both forms.
template <class... C>
constexpr auto both(const C&... config) {
  return std::array<Config, 2 * sizeof...(C)>{config..., rms(config)...};
}

// Each activation, and the tensors with and without each other.
constexpr std::array<Config, 12> fusions(const Config& config) {
  return {affine(config, true, false),
          affine(config, false, true),
          affine(config),
          residual(config),
          affine(residual(config), true, false),
          activated(affine(config, false, true), Activation::relu),
          activated(affine(config), Activation::gelu),
          activated(config, Activation::gelu_tanh),
          activated(residual(config), Activation::silu),
          rms(affine(config)),
          rms(residual(config)),
          rms(affine(residual(config)))};
}

// Everything that layer can be fused with but weight and bias.
constexpr std::array<Config, 10> every_fusion(const Config& config) {
  std::array<Config, 10> all;
  for (int i = 0; i < 10; ++i) {
    all[size_t(i)] = activated(config, Activation(i / 2));
    all[size_t(i)].has_residual = i % 2;
  }
  return all;
}
// And rms.
constexpr auto every_fusion_of_both(const Config& config) {
  return joined(every_fusion(config), std::array{rms(config), rms(residual(config))});
}

constexpr Config kRow{.threads = 128, .group = 1};
constexpr auto kNaiveFlat = both(kRow);
constexpr auto kNaive = every_fusion_of_both(nested(kRow));
constexpr auto kNaiveWeight = every_fusion_of_both(nested(affine(kRow, true, false)));
constexpr auto kNaiveBias = every_fusion(nested(affine(kRow, false, true)));
constexpr auto kNaiveBoth = every_fusion(nested(affine(kRow)));

// Configs that cross the paths of each rung.
constexpr Config kShort{.threads = 128, .group = 128}, kLong{.threads = 256, .group = 256};
constexpr auto kBlock = both(kShort, kLong, nested(kShort), nested(residual(kShort)));
constexpr auto kBlockFused = fusions(kShort);
constexpr auto kBlockFloatWeights = both(affine(kShort), affine(kLong));

template <int vector>
constexpr auto kVectorized = both(with_vector(kShort, vector), with_vector(kLong, vector),
                                  nested(with_vector(kShort, vector)));
template <int vector>
constexpr auto kVectorizedFused = fusions(with_vector(kShort, vector));
constexpr auto kVectorizedFloatWeights =
    both(affine(with_vector(kShort, 8)), affine(with_vector(kLong, 8)));

constexpr Config slots(int group, int vector, int slots, bool whole) {
  return {
      .threads = group > 32 ? std::max(group, 128) : op::warp_row_threads(group, vector * slots),
      .group = group,
      .vector = vector,
      .slots = slots,
      .whole = whole};
}
// Rows of single elements; then of 384 elements in 16-byte accesses, and other lengths.
constexpr auto kScalar = both(slots(8, 1, 1, false), slots(32, 1, 1, false), slots(32, 1, 2, false),
                              slots(256, 1, 5, false));
constexpr auto kScalarFused = both(affine(slots(32, 1, 2, false)));
constexpr auto kFloats =
    both(nested(slots(16, 4, 1, true)), slots(32, 4, 3, true), slots(32, 4, 8, true));
constexpr auto kHalves =
    both(nested(slots(8, 8, 1, true)), slots(16, 8, 3, true), slots(32, 8, 4, true));
constexpr auto kFloatsFused = fusions(slots(32, 4, 3, true));
constexpr auto kHalvesFused = fusions(slots(16, 8, 3, true));
constexpr auto kFloatWeights = both(affine(slots(8, 8, 1, false)), affine(slots(16, 8, 3, true)),
                                    affine(slots(256, 1, 5, false)));

constexpr Config stage(int threads, int vector, int cluster) {
  return {.threads = threads, .group = threads, .vector = vector, .cluster = cluster};
}
constexpr auto kStagedFloats = both(affine(stage(128, 4, 1)), affine(stage(256, 4, 2)));
constexpr auto kStagedHalves = both(residual(affine(stage(128, 8, 1))));

constexpr Config walk(int threads, int vector, int slots, int cluster, bool whole = false,
                      int stages = 3) {
  return {.threads = threads,
          .group = threads,
          .vector = vector,
          .slots = slots,
          .whole = whole,
          .cluster = cluster,
          .stages = stages};
}
constexpr auto kPersistentFloats =
    joined(both(affine(walk(1024, 4, 1, 1)), affine(walk(1024, 4, 3, 2)), walk(1024, 4, 1, 1, true),
                residual(affine(walk(1024, 4, 3, 8, false, 2)))),
           std::array{affine(walk(1024, 4, 4, 4, true))});
constexpr auto kPersistentHalves = both(residual(affine(walk(1024, 8, 1, 1))));
constexpr auto kPersistentFloatWeights = both(affine(walk(512, 8, 1, 1)));

constexpr auto kQuantized = both(nested(kRow));
constexpr auto kQuantizedBlock = both(kShort, kLong);
constexpr auto kQuantizedFloats =
    both(slots(8, 4, 1, false), affine(slots(32, 4, 3, true)), residual(slots(256, 1, 6, false)));
constexpr auto kQuantizedHalves = both(activated(slots(8, 8, 1, false), Activation::gelu),
                                       affine(residual(slots(16, 8, 3, true)), true, false));

}  // namespace

simt::OperatorInstances instances() {
  return {
      {"naive",
       concat(list<Naive, kNaiveFlat>(Same{}), list<Naive, kNaive>(Same{}, &Config::nested),
              list<Naive, kNaiveWeight>(All{}, &Config::nested),
              list<Naive, kNaiveBias>(All{}, &Config::nested),
              list<Naive, kNaiveBoth>(All{}, &Config::nested))},
      {"block", concat(list<Block, kBlock>(Same{}), list<Block, kBlockFused>(Same{}),
                       list<Block, kBlockFloatWeights>(FloatWeights{}))},
      {"vectorized",
       concat(list<Vectorized, kVectorized<4>>(Float{}), list<Vectorized, kVectorized<8>>(Halves{}),
              list<Vectorized, kVectorizedFused<4>>(Float{}),
              list<Vectorized, kVectorizedFused<8>>(Halves{}),
              list<Vectorized, kVectorizedFloatWeights>(FloatWeights{}))},
      {"in_registers",
       concat(list<InRegisters, kScalar>(Same{}), list<InRegisters, kScalarFused>(Float{}),
              list<InRegisters, kFloats>(Float{}), list<InRegisters, kHalves>(Halves{}),
              list<InRegisters, kFloatsFused>(Float{}), list<InRegisters, kHalvesFused>(Halves{}),
              list<InRegisters, kFloatWeights>(FloatWeights{}))},
      {"staged", concat(list<Staged, kStagedFloats>(Float{}), list<Staged, kStagedHalves>(Bf16{}))},
      {"persistent", concat(list<Persistent, kPersistentFloats>(Float{}),
                            list<Persistent, kPersistentHalves>(Bf16{}),
                            list<Persistent, kPersistentFloatWeights>(FloatWeights{}))},
      {"quantized", concat(list<Quantized, kQuantized>(CodesOf<e4m3>{}, &Config::nested),
                           list<Quantized, kQuantized>(CodesOf<e5m2>{}, &Config::nested),
                           list<Quantized, kQuantized>(CodesOf<int8_t>{}, &Config::nested),
                           list<Quantized, kQuantizedBlock>(FloatCodes{}))},
      {"quantized_in_registers",
       concat(list<QuantizedInRegisters, kQuantizedFloats>(FloatCodes{}),
              list<QuantizedInRegisters, kQuantizedHalves>(HalfCodes{}))}};
}

}  // namespace tensorcraft::kernel::norm
