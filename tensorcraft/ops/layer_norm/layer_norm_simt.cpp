// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/layer_norm/layer_norm_simt.hpp"

#include "tensorcraft/ops/layer_norm/00_naive.cuh"
#include "tensorcraft/ops/layer_norm/01_block.cuh"
#include "tensorcraft/ops/layer_norm/02_vectorized.cuh"
#include "tensorcraft/ops/layer_norm/03_in_registers.cuh"
#include "tensorcraft/ops/layer_norm/04_staged.cuh"
#include "tensorcraft/ops/layer_norm/05_quantized.cuh"
#include "tensorcraft/ops/layer_norm/06_quantized_in_registers.cuh"

namespace tensorcraft::kernel::layer_norm {
namespace {

using simt::AnyOf, simt::Types, simt::InstanceList, simt::instances;

// Types of x and of weight and bias; without them it is that of x.
using Float = AnyOf<Types<float, float>>;
using Halves = AnyOf<Types<f16, f16>, Types<bf16, bf16>>;
using Same = AnyOf<Types<float, float>, Types<f16, f16>, Types<bf16, bf16>>;
using FloatWeights = AnyOf<Types<f16, float>, Types<bf16, float>>;
using All = AnyOf<Types<float, float>, Types<f16, f16>, Types<f16, float>, Types<bf16, bf16>,
                  Types<bf16, float>>;

constexpr Config affine(Config config, bool weight = true, bool bias = true) {
  config.has_weight = weight;
  config.has_bias = bias;
  return config;
}
constexpr Config residual(Config config) {
  config.has_residual = 1;
  return config;
}
constexpr Config nested(Config config) {
  config.nested = 1;
  return config;
}
constexpr Config activated(Config config, Activation activation) {
  config.activation = activation;
  return config;
}

// Each activation, and the tensors with and without each other.
constexpr std::array<Config, 9> fusions(const Config& config) {
  return {affine(config, true, false),
          affine(config, false, true),
          affine(config),
          residual(config),
          affine(residual(config), true, false),
          activated(affine(config, false, true), Activation::relu),
          activated(affine(config), Activation::gelu),
          activated(config, Activation::gelu_tanh),
          activated(residual(config), Activation::silu)};
}

// Everything that can be fused but weight and bias.
constexpr std::array<Config, 10> every_fusion(const Config& config) {
  std::array<Config, 10> all;
  for (int i = 0; i < 10; ++i) {
    all[size_t(i)] = activated(config, Activation(i / 2));
    all[size_t(i)].has_residual = i % 2;
  }
  return all;
}

constexpr Config kRow{.threads = 128, .group = 1};
constexpr Config kShortRow{.threads = 128, .group = 128};
constexpr Config kLongRow{.threads = 256, .group = 256};

constexpr Config with_vector(Config config, int vector) {
  config.vector = vector;
  return config;
}
constexpr Config slots(int group, int vector, int slots, bool whole, bool nested = false) {
  return {.threads = 128,
          .group = group,
          .vector = vector,
          .slots = slots,
          .whole = whole,
          .nested = nested};
}

constexpr std::array kNaiveFlat{kRow};
constexpr auto kNaive = every_fusion(nested(kRow));
constexpr auto kNaiveWeight = every_fusion(nested(affine(kRow, true, false)));
constexpr auto kNaiveBias = every_fusion(nested(affine(kRow, false, true)));
constexpr auto kNaiveBoth = every_fusion(nested(affine(kRow)));

constexpr std::array kBlock{kShortRow, kLongRow, nested(kShortRow), nested(residual(kShortRow))};
constexpr auto kBlockFused = fusions(kShortRow);
constexpr std::array kBlockFloatWeights{affine(kShortRow), affine(kLongRow)};

template <int vector>
constexpr std::array kVectorized{with_vector(kShortRow, vector), with_vector(kLongRow, vector),
                                 nested(with_vector(kShortRow, vector))};
template <int vector>
constexpr auto kVectorizedFused = fusions(with_vector(kShortRow, vector));
constexpr std::array kVectorizedFloatWeights{affine(with_vector(kShortRow, 8)),
                                             affine(with_vector(kLongRow, 8))};

// Rows of single elements; then of 384 elements in 16-byte accesses, and other lengths.
constexpr std::array kScalar{slots(8, 1, 1, false), slots(32, 1, 1, false), slots(32, 1, 2, false),
                             slots(128, 1, 12, false)};
constexpr std::array kScalarFused{affine(slots(32, 1, 2, false))};
constexpr std::array kFloats{slots(16, 4, 1, true, true), slots(32, 4, 3, true),
                             slots(32, 4, 8, true)};
constexpr std::array kHalves{slots(8, 8, 1, true, true), slots(16, 8, 3, true),
                             slots(32, 8, 4, true)};
constexpr auto kFloatsFused = fusions(slots(32, 4, 3, true));
constexpr auto kHalvesFused = fusions(slots(16, 8, 3, true));
constexpr std::array kFloatWeights{affine(slots(8, 8, 1, false)), affine(slots(16, 8, 3, true)),
                                   affine(slots(128, 1, 12, false))};

constexpr Config stage(int threads, int vector, int cluster) {
  return {.threads = threads, .group = threads, .vector = vector, .cluster = cluster};
}
constexpr std::array kStagedFloats{affine(stage(128, 4, 1)), affine(stage(256, 4, 2))};
constexpr std::array kStagedHalves{residual(affine(stage(128, 8, 1)))};
// Types of x, of weight and bias, and of the codes.
template <class Code>
using CodesOf = AnyOf<Types<float, float, Code>, Types<f16, f16, Code>, Types<f16, float, Code>,
                      Types<bf16, bf16, Code>, Types<bf16, float, Code>>;
using FloatCodes = AnyOf<Types<float, float, e4m3>>;
using HalfCodes = AnyOf<Types<bf16, bf16, int8_t>>;

constexpr std::array kQuantized{nested(kRow)};
constexpr std::array kQuantizedBlock{kShortRow, kLongRow};
constexpr std::array kQuantizedFloats{slots(8, 4, 1, false), affine(slots(32, 4, 3, true)),
                                      residual(slots(128, 1, 12, false))};
constexpr std::array kQuantizedHalves{activated(slots(8, 8, 1, false), Activation::gelu),
                                      affine(residual(slots(16, 8, 3, true)), true, false)};

}  // namespace

InstanceList naive_instances() {
  const auto rung = []<class T, class W, Config C>(const Params& p) { naive<T, W, C>(p); };
  return simt::concat(instances<Params, kNaiveFlat>(Same{}, rung),
                      instances<Params, kNaive>(Same{}, rung, &Config::nested),
                      instances<Params, kNaiveWeight>(All{}, rung, &Config::nested),
                      instances<Params, kNaiveBias>(All{}, rung, &Config::nested),
                      instances<Params, kNaiveBoth>(All{}, rung, &Config::nested));
}

InstanceList block_instances() {
  const auto rung = []<class T, class W, Config C>(const Params& p) { block<T, W, C>(p); };
  return simt::concat(instances<Params, kBlock>(Same{}, rung),
                      instances<Params, kBlockFused>(Same{}, rung),
                      instances<Params, kBlockFloatWeights>(FloatWeights{}, rung));
}

InstanceList vectorized_instances() {
  const auto rung = []<class T, class W, Config C>(const Params& p) { vectorized<T, W, C>(p); };
  return simt::concat(instances<Params, kVectorized<4>>(Float{}, rung),
                      instances<Params, kVectorized<8>>(Halves{}, rung),
                      instances<Params, kVectorizedFused<4>>(Float{}, rung),
                      instances<Params, kVectorizedFused<8>>(Halves{}, rung),
                      instances<Params, kVectorizedFloatWeights>(FloatWeights{}, rung));
}

InstanceList in_registers_instances() {
  const auto rung = []<class T, class W, Config C>(const Params& p) { in_registers<T, W, C>(p); };
  return simt::concat(
      instances<Params, kScalar>(Same{}, rung), instances<Params, kScalarFused>(Float{}, rung),
      instances<Params, kFloats>(Float{}, rung), instances<Params, kHalves>(Halves{}, rung),
      instances<Params, kFloatsFused>(Float{}, rung),
      instances<Params, kHalvesFused>(Halves{}, rung),
      instances<Params, kFloatWeights>(FloatWeights{}, rung));
}

InstanceList staged_instances() {
  const auto rung = []<class T, class W, Config C>(const Params& p) { staged<T, W, C>(p); };
  return simt::concat(instances<Params, kStagedFloats>(Float{}, rung),
                      instances<Params, kStagedHalves>(AnyOf<Types<bf16, bf16>>{}, rung));
}

InstanceList quantized_instances() {
  const auto rung = []<class T, class W, class Code, Config C>(const Params& p) {
    quantized<T, W, Code, C>(p);
  };
  return simt::concat(instances<Params, kQuantized>(CodesOf<e4m3>{}, rung, &Config::nested),
                      instances<Params, kQuantized>(CodesOf<e5m2>{}, rung, &Config::nested),
                      instances<Params, kQuantized>(CodesOf<int8_t>{}, rung, &Config::nested),
                      instances<Params, kQuantizedBlock>(FloatCodes{}, rung));
}

InstanceList quantized_in_registers_instances() {
  const auto rung = []<class T, class W, class Code, Config C>(const Params& p) {
    quantized_in_registers<T, W, Code, C>(p);
  };
  return simt::concat(instances<Params, kQuantizedFloats>(FloatCodes{}, rung),
                      instances<Params, kQuantizedHalves>(HalfCodes{}, rung));
}

}  // namespace tensorcraft::kernel::layer_norm
