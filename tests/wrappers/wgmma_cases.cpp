// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/tensor_core.hpp"
#include "tensorcraft/simt/wgmma_math.hpp"
#include "tests/wrappers/cases.hpp"
#include "tests/wrappers/formats.hpp"
#include "tests/wrappers/kernels/wgmma.cuh"
#include "tests/wrappers/places.hpp"
#include "tests/wrappers/wgmma_tile.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace tensorcraft::test {
namespace {

constexpr size_t kA = kHeadWords, kD = kA + kWarpgroupThreads * 4;
constexpr int kBAddress = 16 * 1024;  // of B's tile in the image; A's begins at 0

// One instruction with the layouts of its operands.
struct Layout {
  Wgmma op;
  Swizzle a = Swizzle::bytes_128, b = Swizzle::bytes_128;
  bool a_registers = false;
  int step = 0;         // along k within the tile, in instructions
  int base_offset = 0;  // both tiles begin so many rows of 128 bytes after a pattern's start

  WgmmaTile a_tile() const { return {a, op.a_major, element_bytes(op.a), 64}; }
  WgmmaTile b_tile() const { return {b, op.b_major, element_bytes(op.b), op.n}; }
  int shift() const { return base_offset * 128; }
  int k() const { return wgmma_k(op); }
  size_t image() const { return kD + size_t(kWarpgroupThreads * op.n / 2); }
  size_t in_words() const { return image() + kImageWords; }
  // Values of k that a tile holds.
  static int tile_k(const WgmmaTile& t) {
    if (t.major == Major::mn) return 16;
    return (t.swizzle == Swizzle::none ? 32 : t.span()) / t.element_bytes;
  }
  uint64_t descriptor(const WgmmaTile& tile, int address) const {
    WgmmaOperand operand = tile.operand(uint32_t(address + shift() + step * 32));
    operand.base_offset = base_offset;
    return wgmma_descriptor(operand);
  }
};

void fill_tile(Random& random, const WgmmaTile& tile, WgmmaType type, int kind, std::byte* to) {
  for (int i = 0; i < tile.extent; ++i)
    for (int l = 0; l < Layout::tile_k(tile); ++l) {
      const uint32_t bits = random_element(random, type, kind);
      std::memcpy(to + tile.offset(i, l), &bits, size_t(tile.element_bytes));
    }
}

void fill(const Layout& layout, Random& random, int block, std::span<uint32_t> in) {
  const int kind = block % 3;
  const auto put = [&](size_t at, uint64_t v) {
    in[at] = uint32_t(v);
    in[at + 1] = uint32_t(v >> 32);
  };
  put(0, layout.a_registers ? 0 : layout.descriptor(layout.a_tile(), 0));
  put(2, layout.descriptor(layout.b_tile(), kBAddress));
  in[4] = block % 4 != 0;
  const int per_register = 4 / element_bytes(layout.op.a);
  for (size_t i = kA; i < kD; ++i) {
    in[i] = 0;
    for (int e = 0; e < per_register; ++e)
      in[i] |= random_element(random, layout.op.a, kind) << (e * 32 / per_register);
  }
  for (size_t i = kD; i < layout.image(); ++i)
    in[i] = random_element(random, WgmmaType::tf32, kind == 2 ? 1 : kind);
  // NaN wherever there is no element.
  const auto image = in.subspan(layout.image());
  std::fill(image.begin(), image.end(), 0xffffffffu);
  auto* bytes = reinterpret_cast<std::byte*>(image.data()) + layout.shift();
  if (!layout.a_registers) fill_tile(random, layout.a_tile(), layout.op.a, kind, bytes);
  fill_tile(random, layout.b_tile(), layout.op.b, kind, bytes + kBAddress);
}

double element(const WgmmaTile& tile, WgmmaType type, const std::byte* tile_begin, int i, int l) {
  uint32_t bits = 0;
  std::memcpy(&bits, tile_begin + tile.offset(i, l), size_t(tile.element_bytes));
  return decode(format_of(type), type == WgmmaType::tf32 ? bits >> 13 : bits);
}

double a_value(const Layout& layout, Words in, int row, int l) {
  const WgmmaType type = layout.op.a;
  if (!layout.a_registers) {
    const auto* bytes = reinterpret_cast<const std::byte*>(in.data() + layout.image());
    return element(layout.a_tile(), type, bytes + layout.shift(), row,
                   layout.step * layout.k() + l);
  }
  const Place p = place_a(4 / element_bytes(type), row % 16, l);
  const uint32_t bits = in[kA + size_t((row / 16 * 32 + p.lane) * 4 + p.reg)] >> p.shift;
  return decode(format_of(type), type == WgmmaType::tf32 ? bits >> 13 : bits);
}

double b_value(const Layout& layout, Words in, int column, int l) {
  const auto* bytes = reinterpret_cast<const std::byte*>(in.data() + layout.image());
  return element(layout.b_tile(), layout.op.b, bytes + layout.shift() + kBAddress, column,
                 layout.step * layout.k() + l);
}

std::vector<Expected> expect(const Layout& layout, Words in, int block) {
  const Wgmma& op = layout.op;
  std::vector<double> a(size_t(64 * layout.k())), b(size_t(op.n * layout.k()));
  for (int l = 0; l < layout.k(); ++l) {
    for (int i = 0; i < 64; ++i) a[size_t(i * layout.k() + l)] = a_value(layout, in, i, l);
    for (int i = 0; i < op.n; ++i) b[size_t(i * layout.k() + l)] = b_value(layout, in, i, l);
  }
  std::vector<Expected> out(size_t(kWarpgroupThreads * op.n / 2));
  for (int row = 0; row < 64; ++row)
    for (int column = 0; column < op.n; ++column) {
      const Place p = place_c(row % 16, column % 8);
      const int thread = row / 16 * 32 + p.lane, reg = column / 8 * 4 + p.reg;
      const auto at = size_t(thread * (op.n / 2) + reg);
      Sum sum(in[4] ? double(bit_cast<float>(in[kD + at])) : 0.0);
      for (int l = 0; l < layout.k(); ++l) {
        const double x = a[size_t(row * layout.k() + l)], y = b[size_t(column * layout.k() + l)];
        sum.add((op.negate_a != op.negate_b ? -1 : 1) * x * y,
                simt::aligned_magnitude(op.a, x) * simt::aligned_magnitude(op.b, y));
      }
      const double tolerance = block % 3 ? simt::accumulation_error(op.a) * sum.magnitude() : 0;
      out[at] = {sum.bits(), tolerance};
    }
  return out;
}

template <void (*kKernel)(const Params&)>
Case wgmma(const char* name, const Layout& layout) {
  Case c{.name = name, .header = "wgmma.cuh", .sm = 90, .threads = kWarpgroupThreads};
  c.in_words = int(layout.in_words());
  c.out_words = kWarpgroupThreads * layout.op.n / 2;
  c.blocks = 12;
  c.shared_bytes = sizeof(Image);
  c.fill = [=](Random& random, int block, std::span<uint32_t> in) {
    fill(layout, random, block, in);
  };
  c.expect = [=](Words in, int block) { return expect(layout, in, block); };
  c.simt = on_simt<kKernel>;
  return c;
}

}  // namespace

std::vector<Case> wgmma_cases() {
  constexpr auto none = Swizzle::none, s32 = Swizzle::bytes_32, s64 = Swizzle::bytes_64,
                 s128 = Swizzle::bytes_128;
  std::vector<Case> cases;
  // Each kernel runs with several layouts: a colon ends the kernel's name.
  const auto add = [&]<void (*kKernel)(const Params&)>(const char* name, Layout layout) {
    cases.push_back(wgmma<kKernel>(name, layout));
  };
  add.operator()<wgmma_bf16_n64>("wgmma_bf16_n64:128", {kBf16N64, s128, s128});
  add.operator()<wgmma_bf16_n64>("wgmma_bf16_n64:128_step_3", {.op = kBf16N64, .step = 3});
  add.operator()<wgmma_bf16_n64>("wgmma_bf16_n64:128_base_offset_5",
                                 {.op = kBf16N64, .base_offset = 5});
  add.operator()<wgmma_bf16_n64>("wgmma_bf16_n64:64", {kBf16N64, s64, s64});
  add.operator()<wgmma_bf16_n64>("wgmma_bf16_n64:32", {kBf16N64, s32, s32});
  add.operator()<wgmma_bf16_n64>("wgmma_bf16_n64:none", {kBf16N64, none, none});
  add.operator()<wgmma_f16_n128>("wgmma_f16_n128:64_128", {kF16N128, s64, s128});
  add.operator()<wgmma_bf16_n256_mn>("wgmma_bf16_n256_mn:128", {kBf16N256Mn, s128, s128});
  add.operator()<wgmma_f16_n8>("wgmma_f16_n8:none", {kF16N8, none, none});
  add.operator()<wgmma_bf16_n32_mn>("wgmma_bf16_n32_mn:none", {kBf16N32Mn, none, none});
  add.operator()<wgmma_bf16_n32_mn>("wgmma_bf16_n32_mn:32", {kBf16N32Mn, s32, s32});
  add.operator()<wgmma_bf16_n32_mn>("wgmma_bf16_n32_mn:64", {kBf16N32Mn, s64, s64});
  add.operator()<wgmma_bf16_n32_mn>("wgmma_bf16_n32_mn:128", {kBf16N32Mn, s128, s128});
  add.operator()<wgmma_f16_n96_mixed>("wgmma_f16_n96_mixed:64_32", {kF16N96Mixed, s64, s32});
  add.operator()<wgmma_bf16_n16_mixed>("wgmma_bf16_n16_mixed:128_32", {kBf16N16Mixed, s128, s32});
  add.operator()<wgmma_bf16_n192_signs>("wgmma_bf16_n192_signs:128", {kBf16N192Signs, s128, s128});
  add.operator()<wgmma_tf32_n64>("wgmma_tf32_n64:128", {kTf32N64, s128, s128});
  add.operator()<wgmma_tf32_n64>("wgmma_tf32_n64:none", {kTf32N64, none, none});
  add.operator()<wgmma_e4m3_n128>("wgmma_e4m3_n128:128", {kE4m3N128, s128, s128});
  add.operator()<wgmma_e4m3_n128>("wgmma_e4m3_n128:64", {kE4m3N128, s64, s64});
  add.operator()<wgmma_e5m2_e4m3_n32>("wgmma_e5m2_e4m3_n32:32", {kE5m2E4m3N32, s32, s32});
  add.operator()<wgmma_bf16_n64_rs>("wgmma_bf16_n64_rs:128",
                                    {.op = kBf16N64Rs, .a_registers = true});
  add.operator()<wgmma_f16_n256_rs>("wgmma_f16_n256_rs:128",
                                    {.op = kF16N256Rs, .a_registers = true});
  add.operator()<wgmma_tf32_n16_rs>("wgmma_tf32_n16_rs:128",
                                    {.op = kTf32N16Rs, .a_registers = true});
  add.operator()<wgmma_e4m3_n64_rs>("wgmma_e4m3_n64_rs:64",
                                    {.op = kE4m3N64Rs, .b = s64, .a_registers = true});
  add.operator()<wgmma_e5m2_n8_rs>("wgmma_e5m2_n8_rs:128", {.op = kE5m2N8Rs, .a_registers = true});
  add.operator()<wgmma_bf16_n48>("wgmma_bf16_n48:128", {.op = {.n = 48}});
  add.operator()<wgmma_bf16_n80>("wgmma_bf16_n80:128", {.op = {.n = 80}});
  add.operator()<wgmma_bf16_n112>("wgmma_bf16_n112:128", {.op = {.n = 112}});
  add.operator()<wgmma_bf16_n144>("wgmma_bf16_n144:128", {.op = {.n = 144}});
  add.operator()<wgmma_bf16_n160>("wgmma_bf16_n160:128", {.op = {.n = 160}});
  add.operator()<wgmma_bf16_n176>("wgmma_bf16_n176:128", {.op = {.n = 176}});
  add.operator()<wgmma_bf16_n208>("wgmma_bf16_n208:128", {.op = {.n = 208}});
  add.operator()<wgmma_bf16_n224>("wgmma_bf16_n224:128", {.op = {.n = 224}});
  add.operator()<wgmma_bf16_n240>("wgmma_bf16_n240:128", {.op = {.n = 240}});
  add.operator()<wgmma_bf16_n32_rs>("wgmma_bf16_n32_rs:128",
                                    {.op = {.n = 32}, .a_registers = true});
  add.operator()<wgmma_bf16_n48_rs>("wgmma_bf16_n48_rs:128",
                                    {.op = {.n = 48}, .a_registers = true});
  add.operator()<wgmma_bf16_n80_rs>("wgmma_bf16_n80_rs:128",
                                    {.op = {.n = 80}, .a_registers = true});
  add.operator()<wgmma_bf16_n96_rs>("wgmma_bf16_n96_rs:128",
                                    {.op = {.n = 96}, .a_registers = true});
  add.operator()<wgmma_bf16_n112_rs>("wgmma_bf16_n112_rs:128",
                                     {.op = {.n = 112}, .a_registers = true});
  add.operator()<wgmma_bf16_n128_rs>("wgmma_bf16_n128_rs:128",
                                     {.op = {.n = 128}, .a_registers = true});
  add.operator()<wgmma_bf16_n144_rs>("wgmma_bf16_n144_rs:128",
                                     {.op = {.n = 144}, .a_registers = true});
  add.operator()<wgmma_bf16_n160_rs>("wgmma_bf16_n160_rs:128",
                                     {.op = {.n = 160}, .a_registers = true});
  add.operator()<wgmma_bf16_n176_rs>("wgmma_bf16_n176_rs:128",
                                     {.op = {.n = 176}, .a_registers = true});
  add.operator()<wgmma_bf16_n192_rs>("wgmma_bf16_n192_rs:128",
                                     {.op = {.n = 192}, .a_registers = true});
  add.operator()<wgmma_bf16_n208_rs>("wgmma_bf16_n208_rs:128",
                                     {.op = {.n = 208}, .a_registers = true});
  add.operator()<wgmma_bf16_n224_rs>("wgmma_bf16_n224_rs:128",
                                     {.op = {.n = 224}, .a_registers = true});
  add.operator()<wgmma_bf16_n240_rs>("wgmma_bf16_n240_rs:128",
                                     {.op = {.n = 240}, .a_registers = true});
  return cases;
}

}  // namespace tensorcraft::test
