// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/rope/problem.hpp"

#include "tensorcraft/ops/rope/00_naive.cuh"
#include "tensorcraft/ops/rope/01_vectorized.cuh"
#include "tensorcraft/ops/rope/cache.cuh"

namespace tensorcraft::kernel::rope {
namespace {

using simt::AnyOf, simt::Types, simt::concat, simt::list;

// Types of x and of the caches; without caches it is that of x.
using All = simt::FloatsAndWider;
using Same = AnyOf<Types<float, float>, Types<bf16, bf16>>;

constexpr std::array kNaive{Config{.style = Style::half, .nested = 1},
                            Config{.style = Style::interleaved, .nested = 1}};
// Heads of 64 bfloat16 or 32 floats: a thread for each, or for some of them.
constexpr std::array kComputed{Config{.style = Style::half, .lanes = 4, .heads = 1},
                               Config{.style = Style::half, .lanes = 4, .heads = 4},
                               Config{.style = Style::interleaved, .lanes = 4, .heads = 4}};
constexpr std::array kCached{
    Config{.style = Style::half, .lanes = 4, .heads = 4, .has_cache = 1},
    Config{.style = Style::half, .lanes = 4, .heads = 8, .has_cache = 1},
    Config{.style = Style::interleaved, .lanes = 4, .heads = 8, .has_cache = 1}};
constexpr std::array kNested{
    Config{.style = Style::half, .lanes = 4, .heads = 8, .has_cache = 1, .nested = 1}};
constexpr std::array kCache{CacheConfig{}};

}  // namespace

simt::OperatorInstances instances() {
  return {
      {"naive", list<Naive, kNaive>(All{}, &Config::nested)},
      {"vectorized", concat(list<Vectorized, kComputed>(Same{}), list<Vectorized, kCached>(Same{}),
                            list<Vectorized, kNested>(AnyOf<Types<bf16, float>>{}))},
      {"cache", list<Cache, kCache>(simt::Floats{})}};
}

}  // namespace tensorcraft::kernel::rope
