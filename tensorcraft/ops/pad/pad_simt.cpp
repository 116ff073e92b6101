// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/pad/pad_simt.hpp"

#include "tensorcraft/ops/pad/00_naive.cuh"
#include "tensorcraft/ops/pad/01_vectorized.cuh"

namespace tensorcraft::kernel::pad {
namespace {

using simt::AnyOf, simt::Types;
using Bits = AnyOf<Types<uint8_t>, Types<int16_t>, Types<int32_t>, Types<int64_t>>;

// 64 bits count fewer elements too.
constexpr std::array kOne{Config{.wide = 1}};
constexpr std::array kMany{Config{.vectors = 2, .wide = 1}};

}  // namespace

simt::InstanceList naive_instances() {
  return simt::instances<Params, kOne>(
      Bits{}, []<class T, Config C>(const Params& p) { naive<T, C>(p); }, &Config::wide);
}

simt::InstanceList vectorized_instances() {
  const auto rung = []<class T, Config C>(const Params& p) { vectorized<T, C>(p); };
  return simt::concat(simt::instances<Params, kOne>(Bits{}, rung, &Config::wide),
                      simt::instances<Params, kMany>(AnyOf<Types<int16_t>>{}, rung, &Config::wide));
}

}  // namespace tensorcraft::kernel::pad
