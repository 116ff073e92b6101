// SPDX-License-Identifier: Apache-2.0
#include "tests/wrappers/cases.hpp"
#include "tests/wrappers/kernels/matrix.cuh"

#include <algorithm>
#include <numeric>

namespace tensorcraft::test {
namespace {

uint16_t half_of(Words words, size_t first_word, int index) {
  return uint16_t(words[first_word + size_t(index / 2)] >> (index % 2 * 16));
}

// A permutation of the 32 rows, so that matrices are made of rows from anywhere.
void fill_rows_and_names(Random& random, std::span<uint32_t> words, std::span<uint32_t> names) {
  for (uint32_t& word : words) word = random();
  std::iota(names.begin(), names.end(), 0u);
  std::shuffle(names.begin(), names.end(), random);
}

template <void (*kKernel)(const Params&)>
Case load(const char* name, int count, bool transposed) {
  Case c{.name = name, .header = "matrix.cuh", .simt = on_simt<kKernel>};
  c.in_words = 128 + 32;
  c.out_words = 32 * count;
  c.fill = [](Random& random, int, std::span<uint32_t> in) {
    fill_rows_and_names(random, in.first(128), in.subspan(128));
  };
  c.expect = [=](Words in, int) {
    std::vector<Expected> out;
    for (int lane = 0; lane < 32; ++lane)
      for (int matrix = 0; matrix < count; ++matrix) {
        uint32_t reg = 0;
        for (int i = 0; i < 2; ++i) {
          const int row = transposed ? lane % 4 * 2 + i : lane / 4;
          const int column = transposed ? lane / 4 : lane % 4 * 2 + i;
          const uint32_t stored = in[size_t(128 + matrix * 8 + row)];
          reg |= uint32_t(half_of(in, stored * 4, column)) << (16 * i);
        }
        out.push_back({reg});
      }
    return out;
  };
  return c;
}

template <void (*kKernel)(const Params&)>
Case store(const char* name, int count, bool transposed) {
  Case c{.name = name, .header = "matrix.cuh", .sm = 90, .simt = on_simt<kKernel>};
  c.in_words = 32 + 128;
  c.out_words = 128;
  c.fill = [](Random& random, int, std::span<uint32_t> in) {
    fill_rows_and_names(random, in.subspan(32), in.first(32));
  };
  c.expect = [=](Words in, int) {
    std::vector<Expected> out(128);
    for (int matrix = 0; matrix < count; ++matrix)
      for (int row = 0; row < 8; ++row)
        for (int column = 0; column < 8; ++column) {
          // Who holds this element, and in which half.
          const int along = transposed ? row : column, across = transposed ? column : row;
          const int lane = across * 4 + along / 2;
          const uint16_t value = half_of(in, size_t(32 + lane * 4 + matrix), along % 2);
          const size_t to = in[size_t(matrix * 8 + row)] * 4 + size_t(column / 2);
          out[to].bits |= uint32_t(value) << (column % 2 * 16);
        }
    return out;
  };
  return c;
}

Case move() {
  Case c{.name = "movmatrix", .header = "matrix.cuh", .simt = on_simt<movmatrix>};
  c.in_words = c.out_words = 32;
  c.fill = [](Random& random, int, std::span<uint32_t> in) {
    for (uint32_t& word : in) word = random();
  };
  c.expect = [](Words in, int) {
    std::vector<Expected> out(32);
    for (int row = 0; row < 8; ++row)
      for (int column = 0; column < 8; ++column)
        out[size_t(column * 4 + row / 2)].bits |= uint32_t(half_of(in, 0, row * 8 + column))
                                                  << (row % 2 * 16);
    return out;
  };
  return c;
}

}  // namespace

std::vector<Case> matrix_cases() {
  return {load<ldmatrix_x1>("ldmatrix_x1", 1, false),
          load<ldmatrix_x1_trans>("ldmatrix_x1_trans", 1, true),
          load<ldmatrix_x2>("ldmatrix_x2", 2, false),
          load<ldmatrix_x2_trans>("ldmatrix_x2_trans", 2, true),
          load<ldmatrix_x4>("ldmatrix_x4", 4, false),
          load<ldmatrix_x4_trans>("ldmatrix_x4_trans", 4, true),
          store<stmatrix_x1>("stmatrix_x1", 1, false),
          store<stmatrix_x1_trans>("stmatrix_x1_trans", 1, true),
          store<stmatrix_x2>("stmatrix_x2", 2, false),
          store<stmatrix_x2_trans>("stmatrix_x2_trans", 2, true),
          store<stmatrix_x4>("stmatrix_x4", 4, false),
          store<stmatrix_x4_trans>("stmatrix_x4_trans", 4, true),
          move()};
}

}  // namespace tensorcraft::test
