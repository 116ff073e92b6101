// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/swizzle.cuh"

// The shapes of a wgmma.mma_async, and how shared memory holds its operands; plain integer code.
namespace tensorcraft {

enum class WgmmaType : int { f16, bf16, tf32, e4m3, e5m2, s8 };
// Which index of an operand is contiguous in memory: k, or m of A and n of B.
enum class Major : int { k, mn };

// A warpgroup computes D = A B + D for A 64 x k and B k x n, k being 32 bytes of elements, in
// float, or of s8 in int32_t, which wraps.
struct Wgmma {
  int n = 64;  // a multiple of 8, 8 to 256
  WgmmaType a = WgmmaType::bf16, b = WgmmaType::bf16;
  // 16-bit types may have either; A in registers and the other types are k-major.
  Major a_major = Major::k, b_major = Major::k;
  bool negate_a = false, negate_b = false;
};

TC_HOST_DEVICE constexpr int element_bytes(WgmmaType type) {
  return type == WgmmaType::tf32 ? 4 : type == WgmmaType::f16 || type == WgmmaType::bf16 ? 2 : 1;
}
TC_HOST_DEVICE constexpr bool is_integer(const Wgmma& op) { return op.a == WgmmaType::s8; }
TC_HOST_DEVICE constexpr int wgmma_k(const Wgmma& op) { return 32 / element_bytes(op.a); }

TC_HOST_DEVICE constexpr bool is_valid(const Wgmma& op) {
  const auto is_float8 = [](WgmmaType t) { return t == WgmmaType::e4m3 || t == WgmmaType::e5m2; };
  const bool same = op.a == op.b, narrow = is_float8(op.a) && is_float8(op.b);
  const bool k_major = op.a_major == Major::k && op.b_major == Major::k;
  return op.n >= 8 && op.n <= 256 && op.n % 8 == 0 && (same || narrow) &&
         (k_major || element_bytes(op.a) == 2) && !(is_integer(op) && (op.negate_a || op.negate_b));
}

// An operand in shared memory. It consists of pieces of 8 rows, a row being one swizzle span of the
// contiguous index; inside a piece rows follow each other, or with no swizzle 16-byte units do.
// What the offsets mean (bytes, multiples of 16):
//   k-major:  stride   from 8 rows (of m or n) to the next 8
//             leading  no swizzle: from one 16-byte unit along k to the next; else not used
//   mn-major: stride   from 8 values of k to the next 8; no swizzle: between units along m or n
//             leading  from one span along m or n to the next; no swizzle: between 8 values of k
struct WgmmaOperand {
  uint32_t address = 0;  // in shared memory, a multiple of 16; advance along k by adding to it
  uint32_t leading = 0, stride = 0;
  Swizzle swizzle = Swizzle::none;
  // The 128-byte row, in 1024 bytes, of the pattern's first byte if that is not a multiple of the
  // pattern.
  int base_offset = 0;
};

// The 64-bit matrix descriptor: address, leading and stride in units of 16 bytes in bits 0 to 13,
// 16 to 29 and 32 to 45, base offset in bits 49 to 51, layout in bits 62 and 63.
TC_HOST_DEVICE constexpr uint64_t wgmma_descriptor(const WgmmaOperand& operand) {
  const auto units = [](uint32_t bytes) { return uint64_t((bytes & 0x3ffffu) >> 4); };
  const uint64_t layout = (4u - unsigned(operand.swizzle)) & 3u;  // 1, 2, 3: 128, 64, 32 bytes
  return units(operand.address) | units(operand.leading) << 16 | units(operand.stride) << 32 |
         uint64_t(operand.base_offset & 7) << 49 | layout << 62;
}

TC_HOST_DEVICE constexpr WgmmaOperand decode_descriptor(uint64_t descriptor) {
  const auto bytes = [&](int bit) { return uint32_t(descriptor >> bit & 0x3fffu) << 4; };
  return {bytes(0), bytes(16), bytes(32), Swizzle((4u - unsigned(descriptor >> 62)) & 3u),
          int(descriptor >> 49 & 7u)};
}

}  // namespace tensorcraft
