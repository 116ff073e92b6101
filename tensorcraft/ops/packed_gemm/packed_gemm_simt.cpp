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
constexpr std::array kTensorCore{Config{}, Config{.tokens = 16}};
constexpr std::array kManyRows{Config{.row_tiles = 2}, Config{.scales = 1},
                               Config{.row_tiles = 4, .scales = 1},
                               Config{.tokens = 16, .row_tiles = 2, .scales = 1},
                               Config{.tokens = 32, .parts = 2, .scales = 1}};
constexpr std::array kOffsets{Config{.zeros = Zeros::offsets},
                              Config{.tokens = 16, .zeros = Zeros::offsets},
                              Config{.tokens = 32, .parts = 2, .zeros = Zeros::offsets}};
constexpr std::array kTokens{Config{.tokens = 32, .parts = 2}};
constexpr std::array kManyTokens{Config{.tokens = 64, .parts = 2}};

}  // namespace

simt::OperatorInstances instances() {
  return {
      {"naive", simt::list<Naive, simt::kDefaultConfig<Config>>(WithScales<float, f16, bf16>{})},
      {"tensor_core",
       simt::concat(simt::list<TensorCore, kTensorCore>(WithScales<f16, bf16>{}),
                    simt::list<TensorCore, kTokens>(Int4<f16, bf16>{}),
                    simt::list<TensorCore, kManyTokens>(E2m1<f16, bf16>{}),
                    simt::list<TensorCore, kOffsets>(WithOffsets<f16, bf16>{}),
                    simt::list<TensorCore, kManyRows>(simt::AnyOf<simt::Types<bf16, bf16>>{}))}};
}

}  // namespace tensorcraft::kernel::packed_gemm
