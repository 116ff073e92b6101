// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/scatter/problem.hpp"

#include "tensorcraft/ops/scatter/00_naive.cuh"
#include "tensorcraft/ops/scatter/01_claimed.cuh"
#include "tensorcraft/ops/scatter/02_panels.cuh"
#include "tensorcraft/ops/scatter/plan.h"

namespace tensorcraft::kernel::scatter {
namespace {

using simt::AnyOf, simt::Types, simt::concat, simt::list;
using simt::Bits;
using Numbers = AnyOf<Types<float>, Types<f16>, Types<bf16>, Types<int32_t>, Types<int64_t>>;

// 64 bits count fewer elements too.
constexpr std::array kElements{Config{.wide = 1}};
constexpr std::array kOne{Config{.entries = kPlaceEntries}};
constexpr std::array kOf1{Config{.entries = kPlaceEntries, .vector = 16}};
constexpr std::array kOf2{Config{.entries = kPlaceEntries, .vector = 8}};
constexpr std::array kOf4{Config{.entries = kPlaceEntries, .vector = 4}};
constexpr std::array kOf8{Config{.entries = kPlaceEntries, .vector = 2}};
constexpr std::array kPanel{Config{}};
constexpr std::array kPanelOf1{Config{.vector = 16}};
constexpr std::array kPanelOf2{Config{.vector = 8}};
constexpr std::array kPanelOf4{Config{.vector = 4}};
constexpr std::array kPanelOf8{Config{.vector = 2}};
constexpr std::array kCombined{Config{.entries = kCombineEntries, .combines = 1}};

}  // namespace

simt::OperatorInstances instances() {
  return {
      {"naive", concat(list<Naive, kElements>(Bits{}, &Config::wide),
                       list<Naive, kElements>(simt::Floats{}, &Config::wide))},
      {"claimed",
       concat(list<Claimed, kOne>(Bits{}), list<Claimed, kOf1>(AnyOf<Types<uint8_t>>{}),
              list<Claimed, kOf2>(AnyOf<Types<int16_t>>{}),
              list<Claimed, kOf4>(AnyOf<Types<int32_t>>{}),
              list<Claimed, kOf8>(AnyOf<Types<int64_t>>{}), list<Claimed, kCombined>(Numbers{}))},
      {"panels",
       concat(list<Panels, kPanel>(Bits{}), list<Panels, kPanelOf1>(AnyOf<Types<uint8_t>>{}),
              list<Panels, kPanelOf2>(AnyOf<Types<int16_t>>{}),
              list<Panels, kPanelOf4>(AnyOf<Types<int32_t>>{}),
              list<Panels, kPanelOf8>(AnyOf<Types<int64_t>>{}))}};
}

}  // namespace tensorcraft::kernel::scatter
