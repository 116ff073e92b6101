// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/quantize/problem.hpp"

#include "tensorcraft/ops/quantize/00_naive.cuh"
#include "tensorcraft/ops/quantize/01_in_registers.cuh"
#include "tensorcraft/ops/quantize/amax.cuh"
#include "tensorcraft/ops/quantize/dequantize.cuh"

namespace tensorcraft::kernel::quantize {
namespace {

using simt::AnyOf, simt::Types, simt::concat, simt::list;

template <class... T>
using ToEach = AnyOf<Types<T, int8_t>..., Types<T, e4m3>..., Types<T, e5m2>...>;
template <class... T>
using FromEach = AnyOf<Types<int8_t, T>..., Types<e4m3, T>..., Types<e5m2, T>...>;
using Float = AnyOf<Types<float, int8_t>>;
using Half = AnyOf<Types<bf16, e4m3>>;
using FloatToFloat8 = AnyOf<Types<float, e4m3>>;

constexpr std::array kNaive{Config{.nested = 1}};
// Rows of 384 elements, of single elements, and of more than a warp; blocks; squares; a whole
// tensor.
constexpr std::array kFloatTiles{
    Config{.threads = 128, .group = 32, .vector = 4, .slots = 3},
    Config{.threads = 128, .group = 128, .vector = 4, .slots = 3},
    Config{.threads = 128, .group = 32, .vector = 4, .slots = 3, .asymmetric = 1},
    Config{.threads = 128, .group = 128, .vector = 4, .slots = 3, .asymmetric = 1},
    Config{.group = 8, .vector = 4, .slots = 4, .given = 1},
    Config{.vector = 4, .slots = 4, .given = 1}};
constexpr std::array kHalfTiles{Config{.threads = 128, .group = 16, .vector = 8, .slots = 3},
                                Config{.threads = 128, .group = 8, .vector = 1, .slots = 1},
                                Config{.group = 4, .vector = 8, .slots = 4},
                                Config{.group = 4, .vector = 8, .slots = 4, .nested = 1},
                                Config{.group = 32, .vector = 1, .slots = 4},
                                Config{.vector = 8, .slots = 8, .tile_rows = 128},
                                Config{.vector = 8, .slots = 4, .given = 1}};
constexpr std::array kMeasured{Config{.threads = 128, .group = 32, .vector = 4, .slots = 3}};
constexpr std::array kAmaxFloat{Config{.vector = 4, .slots = 8},
                                Config{.vector = 4, .slots = 8, .asymmetric = 1}};
constexpr std::array kAmaxHalf{Config{.vector = 8, .slots = 8}};
constexpr std::array kFromHalf{Config{.group = 16, .vector = 8, .slots = 4}};
constexpr std::array kFromFloat{Config{.group = 32, .vector = 4, .slots = 4},
                                Config{.group = 32, .vector = 4, .slots = 4, .nested = 1}};

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", list<Naive, kNaive>(ToEach<float, f16, bf16>{}, &Config::nested)},
          {"in_registers",
           concat(list<InRegisters, kFloatTiles>(Float{}), list<InRegisters, kHalfTiles>(Half{}),
                  list<InRegisters, kMeasured>(FloatToFloat8{}))},
          {"amax", concat(list<Amax, kAmaxFloat>(Float{}), list<Amax, kAmaxHalf>(Half{}))},
          {"dequantize_naive",
           list<DequantizeNaive, kNaive>(FromEach<float, f16, bf16>{}, &Config::nested)},
          {"dequantize_vectorized",
           concat(list<DequantizeVectorized, kFromFloat>(AnyOf<Types<int8_t, float>>{}),
                  list<DequantizeVectorized, kFromHalf>(
                      AnyOf<Types<e4m3, bf16>, Types<e5m2, bf16>>{}))}};
}

}  // namespace tensorcraft::kernel::quantize
