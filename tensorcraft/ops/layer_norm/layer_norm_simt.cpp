// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/layer_norm/layer_norm_simt.hpp"

#include "tensorcraft/op/norm_simt.hpp"
#include "tensorcraft/ops/layer_norm/00_naive.cuh"
#include "tensorcraft/ops/layer_norm/01_block.cuh"
#include "tensorcraft/ops/layer_norm/02_vectorized.cuh"
#include "tensorcraft/ops/layer_norm/03_in_registers.cuh"
#include "tensorcraft/ops/layer_norm/04_staged.cuh"
#include "tensorcraft/ops/layer_norm/05_persistent.cuh"
#include "tensorcraft/ops/layer_norm/06_quantized.cuh"
#include "tensorcraft/ops/layer_norm/07_quantized_in_registers.cuh"

namespace tensorcraft::kernel::layer_norm {
namespace {

using namespace op::norm;
using simt::InstanceList, simt::instances;

constexpr Config kRow{.threads = 128, .group = 1};
constexpr Config kShortRow = kShortRows<Config>, kLongRow = kLongRows<Config>;
constexpr auto slots = in_slots<Config>;

constexpr Config affine(Config config, bool weight = true, bool bias = true) {
  config.has_weight = weight;
  config.has_bias = bias;
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

constexpr std::array kNaiveFlat{kRow};
constexpr auto kNaive = every_fusion(nested(kRow));
constexpr auto kNaiveWeight = every_fusion(nested(affine(kRow, true, false)));
constexpr auto kNaiveBias = every_fusion(nested(affine(kRow, false, true)));
constexpr auto kNaiveBoth = every_fusion(nested(affine(kRow)));

constexpr auto kBlockFused = fusions(kShortRow);
constexpr std::array kBlockFloatWeights{affine(kShortRow), affine(kLongRow)};

template <int vector>
constexpr auto kVectorizedFused = fusions(with_vector(kShortRow, vector));
constexpr std::array kVectorizedFloatWeights{affine(with_vector(kShortRow, 8)),
                                             affine(with_vector(kLongRow, 8))};

constexpr std::array kScalarFused{affine(slots(32, 1, 2, false))};
constexpr auto kFloatsFused = fusions(slots(32, 4, 3, true));
constexpr auto kHalvesFused = fusions(slots(16, 8, 3, true));
constexpr std::array kFloatWeights{affine(slots(8, 8, 1, false)), affine(slots(16, 8, 3, true)),
                                   affine(slots(256, 1, 5, false))};

constexpr std::array kStagedFloats{affine(stage<Config>(128, 4, 1)),
                                   affine(stage<Config>(256, 4, 2))};
constexpr std::array kStagedHalves{residual(affine(stage<Config>(128, 8, 1)))};

constexpr std::array kPersistentFloats{
    affine(walk<Config>(1024, 4, 1, 1)), affine(walk<Config>(1024, 4, 3, 2)),
    walk<Config>(1024, 4, 1, 1, true), affine(walk<Config>(1024, 4, 4, 4, true)),
    residual(affine(walk<Config>(1024, 4, 3, 8, false, 2)))};
constexpr std::array kPersistentHalves{residual(affine(walk<Config>(1024, 8, 1, 1)))};
constexpr std::array kPersistentFloatWeights{affine(walk<Config>(512, 8, 1, 1))};

constexpr std::array kQuantized{nested(kRow)};
constexpr std::array kQuantizedBlock{kShortRow, kLongRow};
constexpr std::array kQuantizedFloats{slots(8, 4, 1, false), affine(slots(32, 4, 3, true)),
                                      residual(slots(256, 1, 6, false))};
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
  return simt::concat(instances<Params, op::norm::kBlock<Config>>(Same{}, rung),
                      instances<Params, kBlockFused>(Same{}, rung),
                      instances<Params, kBlockFloatWeights>(FloatWeights{}, rung));
}

InstanceList vectorized_instances() {
  const auto rung = []<class T, class W, Config C>(const Params& p) { vectorized<T, W, C>(p); };
  return simt::concat(instances<Params, op::norm::kVectorized<Config, 4>>(Float{}, rung),
                      instances<Params, op::norm::kVectorized<Config, 8>>(Halves{}, rung),
                      instances<Params, kVectorizedFused<4>>(Float{}, rung),
                      instances<Params, kVectorizedFused<8>>(Halves{}, rung),
                      instances<Params, kVectorizedFloatWeights>(FloatWeights{}, rung));
}

InstanceList in_registers_instances() {
  const auto rung = []<class T, class W, Config C>(const Params& p) { in_registers<T, W, C>(p); };
  return simt::concat(instances<Params, op::norm::kScalar<Config>>(Same{}, rung),
                      instances<Params, kScalarFused>(Float{}, rung),
                      instances<Params, op::norm::kFloats<Config>>(Float{}, rung),
                      instances<Params, op::norm::kHalves<Config>>(Halves{}, rung),
                      instances<Params, kFloatsFused>(Float{}, rung),
                      instances<Params, kHalvesFused>(Halves{}, rung),
                      instances<Params, kFloatWeights>(FloatWeights{}, rung));
}

InstanceList staged_instances() {
  const auto rung = []<class T, class W, Config C>(const Params& p) { staged<T, W, C>(p); };
  return simt::concat(instances<Params, kStagedFloats>(Float{}, rung),
                      instances<Params, kStagedHalves>(AnyOf<Types<bf16, bf16>>{}, rung));
}

InstanceList persistent_instances() {
  const auto rung = []<class T, class W, Config C>(const Params& p) { persistent<T, W, C>(p); };
  return simt::concat(instances<Params, kPersistentFloats>(Float{}, rung),
                      instances<Params, kPersistentHalves>(AnyOf<Types<bf16, bf16>>{}, rung),
                      instances<Params, kPersistentFloatWeights>(FloatWeights{}, rung));
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
