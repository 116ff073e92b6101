// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/tensor_core.hpp"
#include "tests/wrappers/cases.hpp"
#include "tests/wrappers/formats.hpp"
#include "tests/wrappers/kernels/mma.cuh"
#include "tests/wrappers/places.hpp"

namespace tensorcraft::test {
namespace {

struct Shape {
  int k, a_registers, per_register;
  int b_registers() const { return a_registers / 2; }
  int lane_words() const { return a_registers + b_registers() + 4; }
  uint32_t a(Words in, int row, int l) const {
    const Place p = place_a(per_register, row, l);
    return in[size_t(p.lane * lane_words() + p.reg)] >> p.shift;
  }
  uint32_t b(Words in, int l, int column) const {
    const Place p = place_b(per_register, l, column);
    return in[size_t(p.lane * lane_words() + a_registers + p.reg)] >> p.shift;
  }
  uint32_t c(Words in, int row, int column) const {
    const Place p = place_c(row, column);
    return in[size_t(p.lane * lane_words() + a_registers + b_registers() + p.reg)];
  }
};

template <class Element>
std::vector<Expected> each_element(Element element) {
  std::vector<Expected> out(128);
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      const Place p = place_c(row, column);
      out[size_t(p.lane * 4 + p.reg)] = element(row, column);
    }
  return out;
}

template <void (*kKernel)(const Params&)>
Case floats(const char* name, WgmmaType type, Shape shape, int sm = 80) {
  Case c{.name = name, .header = "mma.cuh", .sm = sm, .simt = on_simt<kKernel>};
  c.in_words = 32 * shape.lane_words();
  c.out_words = 128;
  c.blocks = 192;
  c.fill = [=](Random& random, int block, std::span<uint32_t> in) {
    const int operands = shape.a_registers + shape.b_registers();
    for (size_t i = 0; i < in.size(); ++i) {
      in[i] = 0;
      if (int(i) % shape.lane_words() >= operands) {
        in[i] = random_element(random, WgmmaType::tf32, block % 3);
        continue;
      }
      for (int e = 0; e < shape.per_register; ++e)
        in[i] |= random_element(random, type, block % 3) << (e * 32 / shape.per_register);
    }
  };
  c.expect = [=](Words in, int block) {
    return each_element([&](int row, int column) -> Expected {
      Sum sum(bit_cast<float>(shape.c(in, row, column)));
      const auto value = [&](uint32_t bits) {
        return decode(format_of(type), type == WgmmaType::tf32 ? bits >> 13 : bits);
      };
      for (int l = 0; l < shape.k; ++l)
        sum.add(value(shape.a(in, row, l)) * value(shape.b(in, l, column)));
      const double tolerance = block % 3 ? simt::accumulation_error(type) * sum.magnitude() : 0;
      return {sum.bits(), tolerance};
    });
  };
  return c;
}

template <void (*kKernel)(const Params&), class Byte>
Case bytes(const char* name) {
  const Shape shape{32, 4, 4};
  Case c{.name = name, .header = "mma.cuh", .simt = on_simt<kKernel>};
  c.in_words = 32 * shape.lane_words();
  c.out_words = 128;
  c.fill = [](Random& random, int, std::span<uint32_t> in) {
    for (uint32_t& word : in) word = random();
  };
  c.expect = [=](Words in, int) {
    return each_element([&](int row, int column) -> Expected {
      int64_t sum = int32_t(shape.c(in, row, column));
      for (int l = 0; l < 32; ++l)
        sum += int64_t(Byte(shape.a(in, row, l))) * Byte(shape.b(in, l, column));
      return {uint32_t(sum)};
    });
  };
  return c;
}

}  // namespace

std::vector<Case> mma_cases() {
  return {floats<mma_f16_k8>("mma_f16_k8", WgmmaType::f16, {8, 2, 2}),
          floats<mma_f16>("mma_f16", WgmmaType::f16, {16, 4, 2}),
          floats<mma_bf16>("mma_bf16", WgmmaType::bf16, {16, 4, 2}),
          floats<mma_tf32>("mma_tf32", WgmmaType::tf32, {8, 4, 1}),
          floats<mma_e4m3>("mma_e4m3", WgmmaType::e4m3, {32, 4, 4}, 89),
          floats<mma_e5m2>("mma_e5m2", WgmmaType::e5m2, {32, 4, 4}, 89),
          bytes<mma_s8, int8_t>("mma_s8"),
          bytes<mma_u8, uint8_t>("mma_u8")};
}

}  // namespace tensorcraft::test
