// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/embedding/embedding_simt.hpp"

#include "tensorcraft/ops/embedding/00_naive.cuh"
#include "tensorcraft/ops/embedding/01_vectorized.cuh"

namespace tensorcraft::kernel::embedding {
namespace {

// Any id with bits of any size.
using All = simt::AnyOf<simt::Types<int32_t, uint8_t>, simt::Types<int32_t, int16_t>,
                        simt::Types<int32_t, int32_t>, simt::Types<int64_t, uint8_t>,
                        simt::Types<int64_t, int16_t>, simt::Types<int64_t, int32_t>>;

constexpr std::array kNaive{Config{.nested = 0}, Config{.nested = 1}};
constexpr std::array kVectorized{Config{.group = 4}, Config{.group = 32}};
constexpr std::array kVectorizedNested{
    Config{.group = 1, .nested = 1},  Config{.group = 2, .nested = 1},
    Config{.group = 4, .nested = 1},  Config{.group = 8, .nested = 1},
    Config{.group = 16, .nested = 1}, Config{.group = 32, .nested = 1}};

}  // namespace

simt::InstanceList naive_instances() {
  return simt::instances<Params, kNaive>(
      All{}, []<class Id, class T, Config C>(const Params& p) { naive<Id, T, C>(p); });
}

simt::InstanceList vectorized_instances() {
  const auto rung = []<class Id, class T, Config C>(const Params& p) { vectorized<Id, T, C>(p); };
  return simt::concat(simt::instances<Params, kVectorized>(All{}, rung),
                      simt::instances<Params, kVectorizedNested>(All{}, rung, &Config::nested));
}

}  // namespace tensorcraft::kernel::embedding
