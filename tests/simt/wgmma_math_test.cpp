// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/wgmma_math.hpp"

#include "tensorcraft/simt/tensor_core.hpp"
#include "tests/wrappers/wgmma_tile.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace tensorcraft::simt {
namespace {

TEST(WgmmaDescriptor, HoldsEachFieldInItsBits) {
  const WgmmaOperand operand{.address = 0x3fff0,
                             .leading = 0x10,
                             .stride = 1024,
                             .swizzle = Swizzle::bytes_64,
                             .base_offset = 5};
  const uint64_t bits = wgmma_descriptor(operand);
  EXPECT_EQ(bits, 0x800a'0040'0001'3fffu);
  const WgmmaOperand back = decode_descriptor(bits);
  EXPECT_EQ(back.address, operand.address);
  EXPECT_EQ(back.leading, operand.leading);
  EXPECT_EQ(back.stride, operand.stride);
  EXPECT_EQ(back.swizzle, operand.swizzle);
  EXPECT_EQ(back.base_offset, operand.base_offset);
  EXPECT_EQ(wgmma_descriptor({.swizzle = Swizzle::bytes_128}) >> 62, 1u);
  EXPECT_EQ(wgmma_descriptor({.swizzle = Swizzle::bytes_32}) >> 62, 3u);
  EXPECT_EQ(wgmma_descriptor({.swizzle = Swizzle::none}) >> 62, 0u);
}

TEST(Swizzle, MovesUnitsWithinASpanAsTheirRowSays) {
  EXPECT_EQ(swizzled(Swizzle::none, 0x3f7), 0x3f7u);
  EXPECT_EQ(swizzled(Swizzle::bytes_32, 0x080), 0x090u);
  EXPECT_EQ(swizzled(Swizzle::bytes_64, 0x184), 0x1b4u);
  EXPECT_EQ(swizzled(Swizzle::bytes_128, 0x3f2), 0x382u);
  for (uint32_t address = 0; address < 4096; address += 4)
    EXPECT_EQ(swizzled(Swizzle::bytes_128, swizzled(Swizzle::bytes_128, address)), address);
}

// A tile written by the obvious description of its layout is read back through the descriptor.
TEST(WgmmaMath, FindsEveryElementOfEveryLayout) {
  for (const Swizzle swizzle :
       {Swizzle::none, Swizzle::bytes_32, Swizzle::bytes_64, Swizzle::bytes_128})
    for (const Major major : {Major::k, Major::mn})
      for (const WgmmaType type : {WgmmaType::bf16, WgmmaType::tf32, WgmmaType::e4m3}) {
        if (major == Major::mn && element_bytes(type) != 2) continue;
        const int extent = 128, bytes = element_bytes(type), k = 32 / bytes;
        const test::WgmmaTile tile{swizzle, major, bytes, extent};
        std::vector<std::byte> shared(2048 + tile.bytes());
        std::vector<double> expected;
        for (int i = 0; i < extent; ++i)
          for (int l = 0; l < k; ++l) {
            const auto bits = uint32_t(i * 37 + l * 11) % 120 << (type == WgmmaType::tf32 ? 20 : 0);
            std::memcpy(&shared[2048 + tile.offset(i, l)], &bits, size_t(bytes));
            expected.push_back(element_value(type, bits));
          }
        EXPECT_EQ(read_operand(shared.data(), tile.operand(2048), major, extent, type), expected)
            << int(swizzle) << ' ' << int(major) << ' ' << int(type);
        const auto units = unit_addresses(tile.operand(2048), major, extent, type);
        EXPECT_EQ(units.size(), size_t(extent) * 2);
        EXPECT_LE(*std::max_element(units.begin(), units.end()) + 16, shared.size());
      }
}

TEST(WgmmaMath, AdvancesAlongKInsideTheSwizzledSpan) {
  const test::WgmmaTile tile{Swizzle::bytes_128, Major::k, 2, 64};
  std::vector<std::byte> shared(tile.bytes());
  for (int i = 0; i < 64; ++i)
    for (int l = 0; l < 64; ++l) {
      const uint16_t bits = uint16_t(i * 64 + l);
      std::memcpy(&shared[tile.offset(i, l)], &bits, 2);
    }
  WgmmaOperand operand = tile.operand(0);
  operand.address += 3 * 32;
  const auto values = read_operand(shared.data(), operand, Major::k, 64, WgmmaType::bf16);
  for (int i = 0; i < 64; ++i)
    for (int l = 0; l < 16; ++l)
      EXPECT_EQ(values[size_t(i * 16 + l)],
                element_value(WgmmaType::bf16, uint32_t(i * 64 + 48 + l)));
}

TEST(WgmmaMath, MultipliesWithSignsAndWithoutTheOldSum) {
  const Wgmma op{.n = 16, .a = WgmmaType::f16, .b = WgmmaType::f16, .negate_b = true};
  std::vector<double> a(64 * 16), b(16 * 16);
  for (size_t i = 0; i < a.size(); ++i) a[i] = double(i % 7) - 3;
  for (size_t i = 0; i < b.size(); ++i) b[i] = double(i % 5) - 2;
  for (const bool accumulate : {false, true}) {
    std::vector<std::array<float, 8>> d(128);
    std::array<float*, 128> registers;
    for (size_t t = 0; t < 128; ++t) {
      d[t].fill(100);
      registers[t] = d[t].data();
    }
    multiply(op, a, b, accumulate, registers);
    for (size_t t = 0; t < 128; ++t)
      for (size_t r = 0; r < 8; ++r) {
        // The accumulator's map by its description in device/ptx/wgmma.cuh.
        const size_t row = t / 32 * 16 + t % 32 / 4 + (r % 4 >= 2 ? 8 : 0);
        const size_t column = r / 4 * 8 + t % 4 * 2 + r % 2;
        double sum = accumulate ? 100 : 0;
        for (size_t l = 0; l < 16; ++l) sum -= a[row * 16 + l] * b[column * 16 + l];
        ASSERT_EQ(d[t][r], sum) << t << ' ' << r;
      }
  }
}

TEST(WgmmaMath, ReadsAFromRegisters) {
  std::vector<std::array<uint32_t, 4>> words(128);
  std::array<const uint32_t*, 128> a;
  for (size_t t = 0; t < 128; ++t) {
    for (size_t r = 0; r < 4; ++r) words[t][r] = uint32_t(t * 4 + r) * 0x00020001u;
    a[t] = words[t].data();
  }
  const auto values = read_registers(a, WgmmaType::bf16);
  // Row 16 * 2 + 3 + 8, column 2 * 1 + 8 + 1 is the upper half of register 3 of thread 64 + 13.
  EXPECT_EQ(values[size_t(43 * 16 + 11)], element_value(WgmmaType::bf16, words[77][3] >> 16));
}

}  // namespace
}  // namespace tensorcraft::simt
