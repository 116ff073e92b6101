// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/op/row_plan.h"
#include "tensorcraft/simt/instance.hpp"

#include <algorithm>
#include <array>

// What the lists of layer_norm and rms_norm for the SIMT device are made of.
namespace tensorcraft::op::norm {

using simt::AnyOf, simt::Types;

// Types of x and of the weights; without any it is that of x.
using Float = AnyOf<Types<float, float>>;
using Halves = AnyOf<Types<f16, f16>, Types<bf16, bf16>>;
using Same = AnyOf<Types<float, float>, Types<f16, f16>, Types<bf16, bf16>>;
using FloatWeights = AnyOf<Types<f16, float>, Types<bf16, float>>;
using All = AnyOf<Types<float, float>, Types<f16, f16>, Types<f16, float>, Types<bf16, bf16>,
                  Types<bf16, float>>;
// Those of x, of the weights and of the codes.
template <class Code>
using CodesOf = AnyOf<Types<float, float, Code>, Types<f16, f16, Code>, Types<f16, float, Code>,
                      Types<bf16, bf16, Code>, Types<bf16, float, Code>>;
using FloatCodes = AnyOf<Types<float, float, e4m3>>;
using HalfCodes = AnyOf<Types<bf16, bf16, int8_t>>;

template <class Config>
constexpr Config residual(Config config) {
  config.has_residual = 1;
  return config;
}
template <class Config>
constexpr Config nested(Config config) {
  config.nested = 1;
  return config;
}
template <class Config>
constexpr Config with_vector(Config config, int vector) {
  config.vector = vector;
  return config;
}

// Configs that cross the paths of each rung.
template <class Config>
inline constexpr Config kShortRows{.threads = 128, .group = 128};
template <class Config>
inline constexpr Config kLongRows{.threads = 256, .group = 256};

template <class Config>
constexpr Config in_slots(int group, int vector, int slots, bool whole) {
  return {.threads = group > 32 ? std::max(group, 128) : warp_row_threads(group, vector * slots),
          .group = group,
          .vector = vector,
          .slots = slots,
          .whole = whole};
}
template <class Config>
constexpr Config stage(int threads, int vector, int cluster) {
  return {.threads = threads, .group = threads, .vector = vector, .cluster = cluster};
}

template <class Config>
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

template <class Config>
inline constexpr std::array kBlock{kShortRows<Config>, kLongRows<Config>,
                                   nested(kShortRows<Config>),
                                   nested(residual(kShortRows<Config>))};
template <class Config, int vector>
inline constexpr std::array kVectorized{with_vector(kShortRows<Config>, vector),
                                        with_vector(kLongRows<Config>, vector),
                                        nested(with_vector(kShortRows<Config>, vector))};
// Rows of single elements; then of 384 elements in 16-byte accesses, and other lengths.
template <class Config>
inline constexpr std::array kScalar{
    in_slots<Config>(8, 1, 1, false), in_slots<Config>(32, 1, 1, false),
    in_slots<Config>(32, 1, 2, false), in_slots<Config>(256, 1, 5, false)};
template <class Config>
inline constexpr std::array kFloats{nested(in_slots<Config>(16, 4, 1, true)),
                                    in_slots<Config>(32, 4, 3, true),
                                    in_slots<Config>(32, 4, 8, true)};
template <class Config>
inline constexpr std::array kHalves{nested(in_slots<Config>(8, 8, 1, true)),
                                    in_slots<Config>(16, 8, 3, true),
                                    in_slots<Config>(32, 8, 4, true)};

}  // namespace tensorcraft::op::norm
