// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/scatter/scatter_simt.hpp"

#include "tensorcraft/ops/scatter/00_naive.cuh"
#include "tensorcraft/ops/scatter/01_claimed.cuh"
#include "tensorcraft/ops/scatter/plan.h"

namespace tensorcraft::kernel::scatter {
namespace {

using simt::AnyOf, simt::Types;
using Bits = AnyOf<Types<uint8_t>, Types<int16_t>, Types<int32_t>, Types<int64_t>>;
using Numbers = AnyOf<Types<float>, Types<f16>, Types<bf16>, Types<int32_t>, Types<int64_t>>;

// 64 bits count fewer elements too.
constexpr std::array kElements{Config{.wide = 1}};
constexpr std::array kOne{Config{.entries = kPlaceEntries}};
constexpr std::array kOf1{Config{.entries = kPlaceEntries, .vector = 16}};
constexpr std::array kOf2{Config{.entries = kPlaceEntries, .vector = 8}};
constexpr std::array kOf4{Config{.entries = kPlaceEntries, .vector = 4}};
constexpr std::array kOf8{Config{.entries = kPlaceEntries, .vector = 2}};
constexpr std::array kCombined{Config{.entries = kCombineEntries, .combines = 1}};

}  // namespace

simt::InstanceList naive_instances() {
  const auto rung = []<class T, Config C>(const Params& p) { naive<T, C>(p); };
  return simt::concat(simt::instances<Params, kElements>(Bits{}, rung, &Config::wide),
                      simt::instances<Params, kElements>(
                          AnyOf<Types<float>, Types<f16>, Types<bf16>>{}, rung, &Config::wide));
}

simt::InstanceList claimed_instances() {
  const auto rung = []<class T, Config C>(const Params& p) { claimed<T, C>(p); };
  return simt::concat(simt::instances<Params, kOne>(Bits{}, rung),
                      simt::instances<Params, kOf1>(AnyOf<Types<uint8_t>>{}, rung),
                      simt::instances<Params, kOf2>(AnyOf<Types<int16_t>>{}, rung),
                      simt::instances<Params, kOf4>(AnyOf<Types<int32_t>>{}, rung),
                      simt::instances<Params, kOf8>(AnyOf<Types<int64_t>>{}, rung),
                      simt::instances<Params, kCombined>(Numbers{}, rung));
}

}  // namespace tensorcraft::kernel::scatter
