// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace tensorcraft::host {

// Where the columns of a matrix go, in floats: those of a run are `stride` apart, and each run
// begins `next` behind the one before.
struct Spread {
  int64_t run, stride, next;

  int64_t at(int64_t column) const { return column % run * stride + column / run * next; }
};

// to[spread.at(c) + r] = from[r * stride + c] for `rows` rows of `columns` floats, in the calling
// thread. The answer: is each of them finite?
bool transpose(float* to, const Spread& spread, const float* from, int64_t stride, int64_t rows,
               int64_t columns);

bool are_finite(const float* x, int64_t n);

}  // namespace tensorcraft::host
