// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/packed_gemm/problem.hpp"

#include "tensorcraft/ops/packed_gemm/00_naive.cuh"
#include "tensorcraft/ops/packed_gemm/01_tensor_core.cuh"

#include <array>

namespace tensorcraft::kernel::packed_gemm {
namespace {

template <class... T>
using Int4 = typename simt::Joined<
    simt::AnyOf<simt::Types<T, float>, simt::Types<T, f16>, simt::Types<T, bf16>>...>::type;
template <class... T>
using E2m1 =
    typename simt::Joined<simt::AnyOf<simt::Types<T, uint8_t>, simt::Types<T, e4m3>>...>::type;
template <class... T>
using WithScales = typename simt::Joined<Int4<T...>, E2m1<T...>>::type;
// Of those that pack_weight() makes.
template <class... T>
using WithOffsets =
    typename simt::Joined<simt::AnyOf<simt::Types<T, float>, simt::Types<T, f16>>...>::type;
constexpr Config few(int tokens, Groups groups, Zeros zeros = Zeros::codes) {
  return {.threads = 128, .tokens = tokens, .parts = 4, .groups = groups, .zeros = zeros};
}
constexpr std::array kFour{few(8, Groups::four), few(16, Groups::four),
                           Config{.tokens = 32, .parts = 2, .groups = Groups::four}};
constexpr std::array kE2m1{Config{}, Config{.tokens = 16}, Config{.tokens = 64, .parts = 2}};
constexpr std::array kOffsets{
    few(8, Groups::four, Zeros::offsets), few(16, Groups::four, Zeros::offsets),
    Config{.tokens = 32, .parts = 2, .groups = Groups::four, .zeros = Zeros::offsets}};
constexpr std::array kManyRows{few(8, Groups::any), few(16, Groups::one),
                               Config{.groups = Groups::one},
                               Config{.row_tiles = 2, .groups = Groups::one},
                               Config{.tokens = 32, .parts = 2, .groups = Groups::one}};

}  // namespace

simt::OperatorInstances instances() {
  return {
      {"naive", simt::list<Naive, simt::kDefaultConfig<Config>>(WithScales<float, f16, bf16>{})},
      {"tensor_core",
       simt::concat(simt::list<TensorCore, kFour>(Int4<f16, bf16>{}),
                    simt::list<TensorCore, kE2m1>(E2m1<f16, bf16>{}),
                    simt::list<TensorCore, kOffsets>(WithOffsets<f16, bf16>{}),
                    simt::list<TensorCore, kManyRows>(simt::AnyOf<simt::Types<bf16, bf16>>{}))}};
}

}  // namespace tensorcraft::kernel::packed_gemm
