// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/tensor_core.hpp"
#include "tests/wrappers/cases.hpp"
#include "tests/wrappers/formats.hpp"
#include "tests/wrappers/kernels/wmma.cuh"
#include "tests/wrappers/places.hpp"

namespace tensorcraft::test {
namespace {

// B and C are two operands of mma.sync side by side.
Place wmma_b(int n, int k, int column) {
  const Place p = place_b(n, k, column % 8);
  return {p.lane, p.reg + column / 8 * 2, p.shift};
}
Place wmma_c(int row, int column) {
  const Place p = place_c(row, column % 8);
  return {p.lane, p.reg + column / 8 * 4, p.shift};
}

// `lines` rows of A or C, or columns of B, of `length` elements, `n` in a word. place(line, i) is
// the place of element i of one; operands of 16 bits come twice.
template <void (*kKernel)(const Params&)>
Case load(const char* name, int n, int length, int registers, Place (*place)(int line, int i)) {
  Case c{.name = name, .header = "wmma.cuh", .simt = on_simt<kKernel>};
  c.in_words = kWmmaHead + kWmmaMatrixWords;
  c.out_words = 32 * registers * (n == 2 ? 2 : 1);
  c.fill = [=](Random& random, int block, std::span<uint32_t> in) {
    random_words(random, block, in);
    const auto unit = uint32_t(4 * n);  // 16 bytes
    in[0] = uint32_t(length) + uint32_t(random() % 4) * unit;
  };
  c.expect = [=](Words in, int) {
    const int copies = n == 2 ? 2 : 1;
    std::vector<Expected> out(size_t(32 * registers * copies));
    for (int line = 0; line < 16; ++line)
      for (int i = 0; i < length; i += n) {
        const Place p = place(line, i);
        const uint32_t word = in[kWmmaHead + (uint32_t(line) * in[0] + uint32_t(i)) / uint32_t(n)];
        for (int copy = 0; copy < copies; ++copy)
          out[size_t((p.lane * copies + copy) * registers + p.reg)] = {word};
      }
    return out;
  };
  return c;
}

Expected element(WgmmaType type, int k, Words in, int block, int row, int column) {
  const int n = 4 / element_bytes(type);
  const auto word = [&](const Place& p, int first) {
    return in[size_t(p.lane * kWmmaLaneWords + first + p.reg)] >> p.shift;
  };
  const auto value = [&](uint32_t bits) {
    return decode(format_of(type), type == WgmmaType::tf32 ? bits >> 13 : bits);
  };
  Sum sum(bit_cast<float>(word(wmma_c(row, column), 8)));
  for (int l = 0; l < k; ++l) {
    const double a = value(word(place_a(n, row, l), 0));
    const double b = value(word(wmma_b(n, l, column), 4));
    sum.add(a * b, simt::aligned_magnitude(type, a) * simt::aligned_magnitude(type, b));
  }
  return {sum.bits(), block % 3 ? simt::accumulation_error(type) * sum.magnitude() : 0};
}

template <void (*kKernel)(const Params&)>
Case multiply(const char* name, WgmmaType type, int k) {
  Case c{.name = name, .header = "wmma.cuh", .simt = on_simt<kKernel>};
  c.in_words = 32 * kWmmaLaneWords;
  c.out_words = 32 * 8;
  c.fill = [=](Random& random, int block, std::span<uint32_t> in) {
    for (size_t i = 0; i < in.size(); ++i) {
      const bool is_sum = i % kWmmaLaneWords >= 8;
      in[i] = random_element(random, is_sum ? WgmmaType::tf32 : type, block % 3);
      if (!is_sum && type == WgmmaType::f16) in[i] |= random_element(random, type, block % 3) << 16;
    }
  };
  c.expect = [=](Words in, int block) {
    std::vector<Expected> out(32 * 8);
    for (int row = 0; row < 16; ++row)
      for (int column = 0; column < 16; ++column) {
        const Place p = wmma_c(row, column);
        out[size_t(p.lane * 8 + p.reg)] = element(type, k, in, block, row, column);
      }
    return out;
  };
  return c;
}

}  // namespace

std::vector<Case> wmma_cases() {
  return {load<wmma_load_a_tf32>("wmma_load_a_tf32", 1, 8, 4,
                                 [](int row, int k) { return place_a(1, row, k); }),
          load<wmma_load_b_tf32>("wmma_load_b_tf32", 1, 8, 4,
                                 [](int column, int k) { return wmma_b(1, k, column); }),
          load<wmma_load_a_f16>("wmma_load_a_f16", 2, 16, 4,
                                [](int row, int k) { return place_a(2, row, k); }),
          load<wmma_load_b_f16>("wmma_load_b_f16", 2, 16, 4,
                                [](int column, int k) { return wmma_b(2, k, column); }),
          load<wmma_load_c_f32>("wmma_load_c_f32", 1, 16, 8,
                                [](int row, int column) { return wmma_c(row, column); }),
          multiply<wmma_mma_tf32>("wmma_mma_tf32", WgmmaType::tf32, 8),
          multiply<wmma_mma_f16>("wmma_mma_f16", WgmmaType::f16, 16)};
}

}  // namespace tensorcraft::test
