// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/wrappers/cases.hpp"
#include "tests/wrappers/formats.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tensorcraft::test {

// Computes what the copy engine makes of two words in memory and two in an operand, by an obvious
// computation: sums rounded once, with subnormals; one NaN; the smaller or larger of a number and a
// NaN is the number.
struct Reduction {
  enum class Op { add, min, max, bit_and, bit_or, bit_xor };
  enum class Type { f32, f16, bf16, u32, s32, u64 };
  Op op;
  Type type;
  bool nan = true;  // whether random_word() gives infinities and NaN

  using Pair = std::pair<uint32_t, uint32_t>;

  Pair reduce(Pair old, Pair x) const {
    if (type != Type::u64) return {word(old.first, x.first), word(old.second, x.second)};
    const auto whole = [](Pair p) { return uint64_t(p.second) << 32 | p.first; };
    const uint64_t sum = whole(old) + whole(x);
    return {uint32_t(sum), uint32_t(sum >> 32)};
  }

  // kind 0: small numbers; 1: any bits of a usual size; 2: special values.
  uint32_t random_word(Random& random, int kind) const {
    if (type == Type::f32) {
      const uint32_t special[] = {0,        1,          0x7fffff,   0x800000,
                                  0xc00000, 0x7f7fffff, 0x7f800000, 0x7fc12345};
      if (kind == 0) return bit_cast<uint32_t>(float(int(random() % 17) - 8));
      if (kind == 1) return (uint32_t(random()) & 0x87ffffffu) | 0x3c000000u;
      return special[random() % (nan ? 8 : 5)] | uint32_t(random() % 2) << 31;
    }
    if (type == Type::f16 || type == Type::bf16)
      return half(random, kind) | half(random, kind) << 16;
    const uint32_t special[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff};
    return kind == 0   ? uint32_t(random() % 5)
           : kind == 1 ? uint32_t(random())
                       : special[random() % 5];
  }

 private:
  const Format& format() const { return type == Type::f16 ? kF16 : kBf16; }

  uint32_t half(Random& random, int kind) const {
    const Format& f = format();
    if (kind == 0) return nearest(f, int(random() % 17) - 8, true);
    const uint32_t sign = uint32_t(random() % 2) << 15;
    if (kind == 1)
      return sign |
             nearest(f, std::ldexp(1 + double(random() % 4096) / 4096, int(random() % 6) - 3),
                     true);
    const uint32_t normal = 1u << f.mantissa_bits, infinity = largest(f) + 1;
    const uint32_t special[] = {0,          1,          normal - 1, normal,
                                normal + 5, largest(f), infinity,   infinity + 3};
    return sign | special[random() % (nan ? 8 : 6)];
  }

  static uint32_t add_f32(uint32_t old, uint32_t x) {
    const float sum = bit_cast<float>(old) + bit_cast<float>(x);
    return sum != sum ? 0x7fffffffu : bit_cast<uint32_t>(sum);
  }

  uint32_t half_of(uint32_t old, uint32_t x) const {
    const double a = decode(format(), old), b = decode(format(), x);
    if (op == Op::add) return a + b != a + b ? 0x7fff : nearest(format(), a + b, false);
    if (a != a && b != b) return 0x7fff;
    if (a != a || b != b) return a != a ? x : old;
    const bool first = a == b ? (old >> 15) > (x >> 15) : a < b;  // -0 is below 0
    return first == (op == Op::min) ? old : x;
  }

  uint32_t word(uint32_t old, uint32_t x) const {
    if (type == Type::f32) return add_f32(old, x);
    if (type == Type::f16 || type == Type::bf16)
      return half_of(old & 0xffff, x & 0xffff) | half_of(old >> 16, x >> 16) << 16;
    switch (op) {
      case Op::add:
        return old + x;
      case Op::min:
        return uint32_t(std::min(int32_t(old), int32_t(x)));
      case Op::max:
        return uint32_t(std::max(int32_t(old), int32_t(x)));
      case Op::bit_and:
        return old & x;
      case Op::bit_or:
        return old | x;
      case Op::bit_xor:
        return old ^ x;
    }
    return old;
  }
};

}  // namespace tensorcraft::test
