// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/ops/gemm/params.h"
#include "tensorcraft/simt/instance.hpp"

#include <array>

// What the SIMT device has of rungs for 8-bit operands; host only.
namespace tensorcraft::kernel::gemm::bytes {

using simt::AnyOf, simt::Types;

// Types of the operands and of the result.
using Sums = AnyOf<Types<int8_t, int32_t>>;
using E4m3 = AnyOf<Types<e4m3, bf16>>;
using E5m2 = AnyOf<Types<e5m2, bf16>>;
using Wide = AnyOf<Types<e4m3, float>, Types<e5m2, bf16>>;
using Int8 = AnyOf<Types<int8_t, bf16>>;
// Results of 8 bits.
using Codes = AnyOf<Types<e4m3, e4m3>>;
using CodesOfInt8 = AnyOf<Types<int8_t, int8_t>>;
using CodesOfBf16 = AnyOf<Types<bf16, e4m3>>;

// The rungs on wgmma: operands along k, a block of scales in a step.
inline constexpr Config along_k(int m, int n, int stages, int slots, int d_vector,
                                Promotion promotion) {
  const int consumers = m / kGroupRows;
  return {.block_m = m,
          .block_n = n,
          .block_k = kScaleBlock,
          .threads = (consumers + 1) * kWarpgroup,
          .stages = stages,
          .consumers = consumers,
          .slots = slots,
          .b_layout = Layout::column_major,
          .d_vector = d_vector,
          .promotion = promotion};
}
inline constexpr Config by_rows(int d_vector, Promotion promotion) {
  return along_k(64, 64, 10, kByRows, d_vector, promotion);
}
inline constexpr Config swapped(Config c) {
  c.swap = 1;
  return c;
}
inline constexpr Config in_two(Config c) {
  c.split = 2;
  return c;
}
inline constexpr Config scaled(Config c) {
  c.has_scales = 1;
  return c;
}
inline constexpr Config with_bias(Config c) {
  c.has_bias = kByColumn;
  c.activation = Activation::gelu;
  return c;
}
inline constexpr Config gated(Config c) {
  c.gated = 1;
  c.activation = Activation::silu;
  return c;
}
inline constexpr Config without_producer(Config c) {
  c.threads -= kWarpgroup;
  return c;
}

inline constexpr Promotion kAll[] = {Promotion::none, Promotion::plain, Promotion::by_column,
                                     Promotion::by_square};
// A Config for each, by config(promotion).
template <class F>
constexpr std::array<Config, 4> each(F config) {
  return {config(kAll[0]), config(kAll[1]), config(kAll[2]), config(kAll[3])};
}
inline constexpr auto kEngine =
    each([](Promotion p) { return along_k(64, 64, 10, kEngineSlots, 1, p); });
inline constexpr auto kRows = each([](Promotion p) { return along_k(64, 64, 10, kByRows, 1, p); });
inline constexpr auto kAligned =
    each([](Promotion p) { return with_bias(along_k(64, 64, 10, kByRows, 4, p)); });
inline constexpr auto kFewRows =
    each([](Promotion p) { return swapped(along_k(64, 16, 16, kEngineSlots, 1, p)); });
inline constexpr auto kFewOddRows =
    each([](Promotion p) { return swapped(along_k(64, 16, 16, kByRows, 1, p)); });
inline constexpr auto kSplit =
    each([](Promotion p) { return in_two(along_k(64, 64, 10, 0, 4, p)); });
inline constexpr auto kSplitOddRows =
    each([](Promotion p) { return in_two(along_k(64, 64, 10, 0, 1, p)); });
// A tile that meets two squares of B, and one of two consumers.
inline constexpr std::array kTwoConsumers{
    along_k(128, 192, 4, kEngineSlots, 1, Promotion::by_square),
    along_k(128, 64, 8, kEngineSlots, 1, Promotion::by_column)};
inline constexpr std::array kScaled{
    scaled(along_k(64, 64, 10, kByRows, 4, Promotion::none)),
    scaled(along_k(64, 64, 10, kByRows, 4, Promotion::plain)),
    scaled(along_k(64, 64, 10, kByRows, 1, Promotion::plain)),
    gated(scaled(along_k(64, 64, 10, kByRows, 4, Promotion::plain)))};
inline constexpr std::array kScaledSplit{scaled(kSplit[0]), scaled(kSplit[1])};
inline constexpr std::array kWide{kEngine[0], kEngine[1], kEngine[3]};
inline constexpr Config one_tile(Promotion p) {
  if (p == Promotion::none) return along_k(128, 256, 4, 0, 4, p);
  if (p == Promotion::by_column) return along_k(128, 64, 8, 0, 4, p);
  return along_k(128, 128, 6, 0, 4, p);
}
inline constexpr auto kOneTile = each(one_tile);
inline constexpr auto kOneTileAlone =
    each([](Promotion p) { return without_producer(one_tile(p)); });
inline constexpr std::array kInt8Sums{kEngine[0], kRows[0],
                                      swapped(along_k(64, 16, 16, kByRows, 4, {})), kFewOddRows[0]};
inline constexpr std::array kInt8SumsOfZeros{scaled(by_rows(4, Promotion::none)), scaled(kRows[0])};
inline constexpr std::array kInt8SplitSums{kSplit[0], kSplitOddRows[0]};
inline constexpr std::array kInt8{kEngine[0], kRows[0], kScaled[0], kFewRows[0]};
// Results of 8 bits go by rows.
inline constexpr std::array kCodes{by_rows(4, Promotion::none),
                                   by_rows(4, Promotion::plain),
                                   by_rows(1, Promotion::plain),
                                   by_rows(4, Promotion::by_square),
                                   kAligned[1],
                                   gated(by_rows(4, Promotion::plain)),
                                   scaled(by_rows(4, Promotion::plain)),
                                   swapped(along_k(64, 16, 16, kByRows, 4, Promotion::plain)),
                                   kFewOddRows[1]};
inline constexpr std::array kSplitCodes{kSplit[1], kSplitOddRows[1]};
inline constexpr std::array kOneTileCodes{one_tile(Promotion::plain)};
inline constexpr std::array kOneTileAloneCodes{kOneTileAlone[1]};
inline constexpr std::array kInt8Codes{by_rows(4, Promotion::none), kRows[0]};

// swizzled; vector: the elements of an access.
inline constexpr Config warp_tile(int vector, int d_vector, Promotion promotion) {
  return {.block_m = 32,
          .block_n = 64,
          .block_k = kScaleBlock,
          .warp_m = 16,
          .warp_n = 32,
          .threads = 128,
          .stages = 4,
          .b_layout = Layout::column_major,
          .a_vector = vector,
          .b_vector = vector,
          .d_vector = d_vector,
          .promotion = promotion};
}
inline constexpr std::array kWarps{
    warp_tile(16, 4, Promotion::none), warp_tile(16, 4, Promotion::plain),
    warp_tile(16, 1, Promotion::plain), warp_tile(1, 1, Promotion::plain)};
inline constexpr std::array kWarpsScaled{scaled(kWarps[1]), gated(scaled(kWarps[1]))};
inline constexpr std::array kWarpSums{kWarps[0], warp_tile(16, 1, Promotion::none)};
inline constexpr std::array kInt8Warps{kWarps[0], scaled(kWarps[0])};
inline constexpr std::array kWarpCodes{kWarps[1], kWarps[2]};

// gemv; vector: the elements of an access.
inline constexpr Config few_rows(int tokens, int vector, int d_vector, Promotion promotion) {
  const int lines = tokens == 1 ? 2 : 4;
  return {.block_m = tokens,
          .block_n = 8 * lines,
          .warp_m = tokens,
          .warp_n = lines,
          .threads = 256,
          .stages = 2,
          .b_layout = Layout::column_major,
          .a_vector = vector,
          .b_vector = vector,
          .d_vector = d_vector,
          .promotion = promotion};
}
template <Promotion promotion>
inline constexpr std::array kGemv{few_rows(1, 16, 4, promotion), few_rows(2, 16, 4, promotion),
                                  few_rows(4, 16, 4, promotion), few_rows(1, 16, 1, promotion),
                                  few_rows(4, 1, 1, promotion)};
inline constexpr std::array kGemvScaled{scaled(few_rows(1, 16, 4, Promotion::none)),
                                        gated(few_rows(1, 16, 4, Promotion::none)),
                                        gated(few_rows(4, 16, 4, Promotion::by_square))};

inline constexpr std::array kGemvCodes{few_rows(1, 16, 4, Promotion::none)};

inline constexpr PackConfig pack(Layout layout, int vector) {
  return {.layout = layout, .vector = vector};
}
inline constexpr std::array kPack{pack(Layout::row_major, 1), pack(Layout::column_major, 1),
                                  pack(Layout::column_major, 16)};

}  // namespace tensorcraft::kernel::gemm::bytes
