// SPDX-License-Identifier: Apache-2.0
#include "tests/wrappers/cases.hpp"
#include "tests/wrappers/formats.hpp"
#include "tests/wrappers/kernels/convert.cuh"

#include <cfenv>
#include <cmath>

namespace tensorcraft::test {
namespace {

constexpr int kThreads = 128;

float as_float(uint32_t bits) { return bit_cast<float>(bits); }
uint32_t as_bits(float x) { return bit_cast<uint32_t>(x); }

// Every exponent, half-way cases of every format, zeros, infinities and NaN.
uint32_t any_float(Random& random) {
  static constexpr uint32_t special[] = {
      0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x00800000, 0x7f7fffff, 0xff7fffff,
      0x7f800000, 0xff800000, 0x7fc00000, 0xffffffff, 0x7f800001, 0x477fe000, 0x477fefff,
      0x477ff000, 0x43e00000, 0x43e80000, 0x47600000, 0x47680000, 0x33800000};
  const uint32_t x = random();
  switch (random() % 5) {
    case 0:
      return special[x % std::size(special)];
    case 1:
      return x;
    case 2:
      return x & ~((1u << (random() % 24)) - 1);  // few bits, so half-way cases
    default:                                      // within the range of the 16-bit formats
      return (x & 0x80ffffff) | (100 + random() % 45) << 23;
  }
}

uint32_t narrow(const Format& f, float x, bool saturate, uint32_t nan, bool away = false) {
  return x != x ? nan : nearest(f, x, saturate, away);
}
uint32_t pair(uint32_t high, uint32_t low, int bits) { return high << bits | low; }
uint32_t widen_byte(const Format& f, uint32_t byte) {
  const double value = decode(f, byte);
  return value != value ? 0x7fff : nearest(kF16, value, false);
}

// x y + y of each half. The product is exact; what the sum loses is its last bit.
uint32_t fma_of(const Format& f, uint32_t x, uint32_t y) {
  const auto half = [&](int shift) {
    const double a = decode(f, x >> shift & 0xffff), b = decode(f, y >> shift & 0xffff);
    const double product = a * b, sum = product + b, added = sum - product;
    const double lost = (product - (sum - added)) + (b - added);
    if (sum != sum) return 0x7fffu;
    const bool is_odd = bit_cast<uint64_t>(sum) % 2 == 1;
    if (!(lost != 0) || is_odd || std::isinf(sum)) return nearest(f, sum, false);
    return nearest(f, std::nextafter(sum, lost > 0 ? INFINITY : -INFINITY), false);
  };
  return pair(half(16), half(0), 16);
}

using Meaning = Expected (*)(uint32_t x, uint32_t y);

template <void (*kKernel)(const Params&)>
Case convert(const char* name, Meaning meaning, int sm = 80) {
  return {.name = name,
          .header = "convert.cuh",
          .sm = sm,
          .threads = kThreads,
          .in_words = 2 * kThreads,
          .out_words = kThreads,
          .blocks = 512,
          .simt = on_simt<kKernel>,
          .fill =
              [](Random& random, int block, std::span<uint32_t> in) {
                for (size_t i = 0; i < in.size(); ++i)
                  // The narrow formats' own values, all of them, in the first blocks.
                  in[i] = i % 2 == 0 && block % 2 == 0
                              ? uint32_t(block / 2 * kThreads) + uint32_t(i / 2)
                              : any_float(random);
              },
          .expect =
              [meaning](Words in, int) {
                std::vector<Expected> out;
                for (size_t i = 0; i < in.size(); i += 2) out.push_back(meaning(in[i], in[i + 1]));
                return out;
              }};
}

// A function that the hardware approximates.
Expected close(double value, double relative) {
  const auto result = float(value);
  if (result != result) return {0x7fffffff};
  const bool flushed = std::fabs(value) < 0x1p-126;
  return {as_bits(flushed ? std::copysign(0.0f, result) : result),
          flushed ? std::fabs(value) : std::fabs(value) * relative + 0x1p-149};
}
float flush(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

Expected larger(uint32_t x, uint32_t y, bool smallest) {
  const float a = as_float(x), b = as_float(y);
  if (a != a || b != b) return {0x7fffffff};
  if (a == b) return {smallest ? x | y : x & y};
  return {(a > b) != smallest ? x : y};
}

// a b + c by the host's own rounding towards 0.
float towards_zero(float a, float b, float c) {
  volatile float x = a, y = b, z = c;
  std::fesetround(FE_TOWARDZERO);
  volatile float result = std::fma(x, y, z);
  std::fesetround(FE_TONEAREST);
  return result;
}

// The larger of each half, as values of a format.
Expected larger_halves(const Format& f, uint32_t x, uint32_t y) {
  uint32_t halves[2];
  for (int i = 0; i < 2; ++i) {
    const uint32_t p = x >> (16 * i) & 0xffff, q = y >> (16 * i) & 0xffff;
    const double a = decode(f, p), b = decode(f, q);
    halves[i] = a != a || b != b ? 0x7fff : a == b ? p & q : a > b ? p : q;
  }
  return {pair(halves[1], halves[0], 16)};
}

}  // namespace

std::vector<Case> convert_cases() {
  return {
      convert<cvt_f16>("cvt_f16",
                       [](uint32_t x, uint32_t) -> Expected {
                         return {narrow(kF16, as_float(x), false, 0x7fff)};
                       }),
      convert<cvt_f32_from_f16>("cvt_f32_from_f16",
                                [](uint32_t x, uint32_t) -> Expected {
                                  const double value = decode(kF16, x & 0xffff);
                                  return {value != value ? 0x7fffffffu : as_bits(float(value))};
                                }),
      convert<cvt_bf16>("cvt_bf16",
                        [](uint32_t x, uint32_t) -> Expected {
                          return {narrow(kBf16, as_float(x), false, 0x7fff)};
                        }),
      convert<cvt_tf32>("cvt_tf32",
                        [](uint32_t x, uint32_t) -> Expected {
                          const float value = as_float(x);
                          return {value != value ? x >> 13 << 13
                                                 : narrow(kTf32, value, false, 0, true) << 13};
                        }),
      convert<fma_rz>("fma_rz",
                      [](uint32_t x, uint32_t y) -> Expected {
                        const float value = towards_zero(as_float(x), as_float(y), as_float(x));
                        return {value != value ? 0x7fffffffu : as_bits(value)};
                      }),
      convert<cvt_f16x2>("cvt_f16x2",
                         [](uint32_t x, uint32_t y) -> Expected {
                           return {pair(narrow(kF16, as_float(x), false, 0x7fff),
                                        narrow(kF16, as_float(y), false, 0x7fff), 16)};
                         }),
      convert<cvt_bf16x2>("cvt_bf16x2",
                          [](uint32_t x, uint32_t y) -> Expected {
                            return {pair(narrow(kBf16, as_float(x), false, 0x7fff),
                                         narrow(kBf16, as_float(y), false, 0x7fff), 16)};
                          }),
      convert<cvt_e4m3x2>("cvt_e4m3x2",
                          [](uint32_t x, uint32_t y) -> Expected {
                            return {pair(narrow(kE4m3, as_float(x), true, 0x7f),
                                         narrow(kE4m3, as_float(y), true, 0x7f), 8)};
                          }),
      convert<cvt_e5m2x2>("cvt_e5m2x2",
                          [](uint32_t x, uint32_t y) -> Expected {
                            return {pair(narrow(kE5m2, as_float(x), true, 0x7f),
                                         narrow(kE5m2, as_float(y), true, 0x7f), 8)};
                          }),
      convert<cvt_f16x2_from_e4m3x2>("cvt_f16x2_from_e4m3x2",
                                     [](uint32_t x, uint32_t) -> Expected {
                                       return {pair(widen_byte(kE4m3, x >> 8 & 0xff),
                                                    widen_byte(kE4m3, x & 0xff), 16)};
                                     }),
      convert<cvt_f16x2_from_e5m2x2>("cvt_f16x2_from_e5m2x2",
                                     [](uint32_t x, uint32_t) -> Expected {
                                       return {pair(widen_byte(kE5m2, x >> 8 & 0xff),
                                                    widen_byte(kE5m2, x & 0xff), 16)};
                                     }),
      convert<max_nan>("max_nan",
                       [](uint32_t x, uint32_t y) -> Expected { return larger(x, y, false); }),
      convert<min_nan>("min_nan",
                       [](uint32_t x, uint32_t y) -> Expected { return larger(x, y, true); }),
      convert<prmt>("prmt",
                    [](uint32_t x, uint32_t y) -> Expected {
                      return {(x >> 16 & 0xff) | (y & 0xff) << 8 | (x >> 8 & 0xff) << 16 |
                              (y >> 24) << 24};
                    }),
      convert<fma_bf16x2>("fma_bf16x2",
                          [](uint32_t x, uint32_t y) -> Expected { return {fma_of(kBf16, x, y)}; }),
      convert<fma_f16x2>("fma_f16x2",
                         [](uint32_t x, uint32_t y) -> Expected { return {fma_of(kF16, x, y)}; }),
      convert<max_nan_bf16x2>(
          "max_nan_bf16x2",
          [](uint32_t x, uint32_t y) -> Expected { return larger_halves(kBf16, x, y); }),
      convert<max_nan_f16x2>(
          "max_nan_f16x2",
          [](uint32_t x, uint32_t y) -> Expected { return larger_halves(kF16, x, y); }),
      convert<ex2_approx>("ex2_approx",
                          [](uint32_t x, uint32_t) -> Expected {
                            return close(std::exp2(double(flush(as_float(x)))), 0x1p-21);
                          }),
      convert<rcp_approx>("rcp_approx",
                          [](uint32_t x, uint32_t) -> Expected {
                            return close(1 / double(flush(as_float(x))), 0x1p-22);
                          }),
      convert<tanh_approx>("tanh_approx",
                           [](uint32_t x, uint32_t) -> Expected {
                             return close(std::tanh(double(as_float(x))), 0x1p-10);
                           }),
  };
}

}  // namespace tensorcraft::test
