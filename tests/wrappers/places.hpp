// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tensorcraft::test {

// The fragments of mma.sync by their description in device/ptx/mma.cuh and mma_bytes.cuh: which
// lane and register hold element (row, k) of A, (k, column) of B and (row, column) of C, and from
// which bit on. `n` elements share a register.
struct Place {
  int lane, reg, shift;
};
inline Place place_a(int n, int row, int k) {
  return {row % 8 * 4 + k / n % 4, row / 8 + k / n / 4 * 2, k % n * 32 / n};
}
inline Place place_b(int n, int k, int column) {
  return {column * 4 + k / n % 4, k / n / 4, k % n * 32 / n};
}
inline Place place_c(int row, int column) {
  return {row % 8 * 4 + column / 2, row / 8 * 2 + column % 2, 0};
}

}  // namespace tensorcraft::test
