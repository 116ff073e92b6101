// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/append_kv/problem.hpp"

#include "tensorcraft/ops/append_kv/00_naive.cuh"
#include "tensorcraft/ops/append_kv/01_vectorized.cuh"
#include "tensorcraft/ops/append_kv/copy.cuh"

namespace tensorcraft::kernel::append_kv {
namespace {

using simt::AnyOf, simt::Types, simt::concat, simt::list;

// Types of k, of the caches, and of cos, sin and weights.
template <class T, class W>
using OfCodes = AnyOf<Types<T, T, W>, Types<T, e4m3, W>, Types<T, int8_t, W>>;
constexpr std::array kNaive{Config{.nested = 1}};
// Heads of 64 bfloat16 or 32 floats.
constexpr std::array kFloats{Config{.lanes = 4, .heads = 4},
                             Config{.lanes = 4, .heads = 4, .rotates = 1},
                             Config{.lanes = 4, .heads = 8, .rotates = 1},
                             Config{.lanes = 4, .heads = 8, .rotates = 1, .normalizes = 1}};
constexpr std::array kHalves{Config{.lanes = 4, .heads = 4},
                             Config{.lanes = 4, .heads = 8, .rotates = 1},
                             Config{.lanes = 4, .heads = 8, .normalizes = 1}};
constexpr std::array kMixed{Config{.lanes = 4, .heads = 8, .rotates = 1},
                            Config{.lanes = 4, .heads = 8, .rotates = 1, .normalizes = 1},
                            Config{.lanes = 4, .heads = 8, .rotates = 1, .nested = 1}};
constexpr std::array kPlain{Config{.lanes = 4, .heads = 4}};
constexpr std::array kRotated{Config{.lanes = 4, .heads = 4, .rotates = 1}};

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", concat(list<Naive, kNaive>(OfCodes<float, float>{}, &Config::nested),
                           list<Naive, kNaive>(OfCodes<f16, f16>{}, &Config::nested),
                           list<Naive, kNaive>(OfCodes<f16, float>{}, &Config::nested),
                           list<Naive, kNaive>(OfCodes<bf16, bf16>{}, &Config::nested),
                           list<Naive, kNaive>(OfCodes<bf16, float>{}, &Config::nested))},
          {"vectorized", concat(list<Vectorized, kFloats>(AnyOf<Types<float, float, float>>{}),
                                list<Vectorized, kHalves>(AnyOf<Types<bf16, bf16, bf16>>{}),
                                list<Vectorized, kMixed>(AnyOf<Types<bf16, bf16, float>>{}),
                                list<Vectorized, kRotated>(AnyOf<Types<bf16, e4m3, float>>{}),
                                list<Vectorized, kPlain>(AnyOf<Types<float, int8_t, float>>{}))},
          {"copy", list<Copy, simt::kDefaultConfig<CopyConfig>>(
                       AnyOf<Types<uint8_t>, Types<int16_t>, Types<int32_t>>{})}};
}

}  // namespace tensorcraft::kernel::append_kv
