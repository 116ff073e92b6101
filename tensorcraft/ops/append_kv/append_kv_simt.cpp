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
using Few = AnyOf<Types<float, float, float>, Types<bf16, bf16, bf16>, Types<bf16, bf16, float>,
                  Types<bf16, e4m3, float>, Types<float, int8_t, float>>;

constexpr std::array kNaive{Config{.nested = 1}};
// Heads of 64 bfloat16 or 32 floats.
constexpr std::array kVectorized{Config{.lanes = 4, .heads = 4},
                                 Config{.lanes = 4, .heads = 4, .rotates = 1},
                                 Config{.lanes = 4, .heads = 8, .rotates = 1},
                                 Config{.lanes = 4, .heads = 8, .rotates = 1, .normalizes = 1},
                                 Config{.lanes = 4, .heads = 8, .normalizes = 1},
                                 Config{.lanes = 4, .heads = 8, .rotates = 1, .nested = 1}};

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", concat(list<Naive, kNaive>(OfCodes<float, float>{}, &Config::nested),
                           list<Naive, kNaive>(OfCodes<f16, f16>{}, &Config::nested),
                           list<Naive, kNaive>(OfCodes<f16, float>{}, &Config::nested),
                           list<Naive, kNaive>(OfCodes<bf16, bf16>{}, &Config::nested),
                           list<Naive, kNaive>(OfCodes<bf16, float>{}, &Config::nested))},
          {"vectorized", list<Vectorized, kVectorized>(Few{})},
          {"copy", list<Copy, simt::kDefaultConfig<CopyConfig>>(simt::Bits{})}};
}

}  // namespace tensorcraft::kernel::append_kv
