// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which element of a matrix each register of a lane holds, for the instructions that spread small
// matrices over a warp. One rule covers mma.sync of every element size, because a register's
// elements are neighbours and the lanes of a group of four hold neighbouring registers.
namespace tensorcraft::simt {

struct Element {
  int row = 0, column = 0;
  friend constexpr bool operator==(const Element&, const Element&) = default;
};

// Operand A, 16 x k: rows g and g + 8, then the same in the next half of k. `per_register` is how
// many elements share a register: 1 (tf32), 2 (16 bits) or 4 (8 bits).
constexpr Element a_element(int per_register, int lane, int reg, int i) {
  return {lane / 4 + reg % 2 * 8, (lane % 4 + reg / 2 * 4) * per_register + i};
}
// Operand B, k x 8.
constexpr Element b_element(int per_register, int lane, int reg, int i) {
  return {(lane % 4 + reg * 4) * per_register + i, lane / 4};
}
// C and D, 16 x 8, of 32 bits. With 4 j more registers: the 16 x 8 block of columns 8 j, as in the
// accumulators of wgmma and WMMA.
constexpr Element c_element(int lane, int reg) {
  return {lane / 4 + reg % 4 / 2 * 8, lane % 4 * 2 + reg % 2 + reg / 4 * 8};
}
// An 8 x 8 matrix of 16-bit elements: ldmatrix, stmatrix, movmatrix.
constexpr Element matrix_element(int lane, int i, bool transposed) {
  const Element plain{lane / 4, lane % 4 * 2 + i};
  return transposed ? Element{plain.column, plain.row} : plain;
}
// WMMA 16 x 16 x k multiplies as two mma.sync 16 x 8 x k: its B holds the left one's registers,
// then the right one's.
constexpr Element wmma_b_element(int per_register, int lane, int reg, int i) {
  const Element in_half = b_element(per_register, lane, reg % 2, i);
  return {in_half.row, in_half.column + reg / 2 * 8};
}

// The published map of m16n8k8 tf32, lane 13: A a0 [3][1], a1 row + 8, a2 column + 4, a3 both.
static_assert(a_element(1, 13, 0, 0) == Element{3, 1} && a_element(1, 13, 3, 0) == Element{11, 5});
static_assert(b_element(1, 13, 0, 0) == Element{1, 3} && b_element(1, 13, 1, 0) == Element{5, 3});
static_assert(c_element(13, 1) == Element{3, 3} && c_element(13, 2) == Element{11, 2});

}  // namespace tensorcraft::simt
