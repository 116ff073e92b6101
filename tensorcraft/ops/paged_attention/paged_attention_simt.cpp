// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/paged_attention/problem.hpp"

#include "tensorcraft/ops/paged_attention/00_naive.cuh"
#include "tensorcraft/ops/paged_attention/01_packed.cuh"
#include "tensorcraft/ops/paged_attention/02_split_kv.cuh"
#include "tensorcraft/ops/paged_attention/combine.cuh"

namespace tensorcraft::kernel::paged_attention {
namespace {

using simt::AnyOf, simt::Types, simt::concat, simt::list;

// Types of q and of the caches.
using Any = AnyOf<Types<float, float>, Types<float, e4m3>, Types<float, int8_t>, Types<f16, f16>,
                  Types<f16, e4m3>, Types<f16, int8_t>, Types<bf16, bf16>, Types<bf16, e4m3>,
                  Types<bf16, int8_t>>;

using Codes = AnyOf<Types<bf16, e4m3>, Types<f16, e4m3>, Types<bf16, int8_t>>;
using Same = AnyOf<Types<bf16, bf16>, Types<f16, f16>>;

constexpr std::array kNaive{Config{}};
constexpr std::array kPacked{Config{.head_dim = 64, .value_dim = 64},
                             Config{.head_dim = 128, .value_dim = 128}};
constexpr std::array kCodes{Config{.head_dim = 64, .value_dim = 64}};
constexpr std::array kCapped{Config{.head_dim = 64, .value_dim = 64, .has_softcap = 1}};
// Values in slices; head_dim in steps of 4, 3 and 1 accesses.
constexpr std::array kOthers{
    Config{.head_dim = 256, .value_dim = 256}, Config{.head_dim = 96, .value_dim = 64},
    Config{.head_dim = 32, .value_dim = 64}, Config{.head_dim = 576, .value_dim = 256}};

// What both rungs of packed rows have.
template <class Rung>
simt::InstanceList packed_rows() {
  return concat(list<Rung, kPacked>(Same{}), list<Rung, kCapped>(Same{}),
                list<Rung, kCodes>(Codes{}), list<Rung, kOthers>(AnyOf<Types<bf16, bf16>>{}));
}

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", list<Naive, kNaive>(Any{})},
          {"packed", packed_rows<Packed>()},
          {"split_kv", packed_rows<SplitKv>()},
          {"combine", list<Combine, simt::kDefaultConfig<CombineConfig>>(simt::Halves{})}};
}

}  // namespace tensorcraft::kernel::paged_attention
