// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/divider.h"
#include "tensorcraft/device/output_type.h"
#include "tensorcraft/device/rows.h"

namespace tensorcraft::kernel::reduce {

// What becomes of the elements of a reduction. `count` counts those that are not 0, which is the
// sum of bools; `float_prod` is the product of integers as floats.
enum class Operation : int {
  sum,
  count,
  mean,
  max,
  min,
  argmax,
  argmin,
  prod,
  float_prod,
  var,
  std,
  any,
  all
};

// May a call ask for another type of results than the operation's own? `all` is the product of
// bools.
template <Operation operation>
inline constexpr bool converts =
    operation == Operation::sum || operation == Operation::count || operation == Operation::prod ||
    operation == Operation::float_prod || operation == Operation::all;

// Run time. The elements of output `row` are those of `segments` runs of `cols` elements, `x_step`
// apart; every row has `inner` neighbours that are reduced alike, in `row` one. Rows count in the
// order of out, elements of a reduction in that of x.
struct Params {
  enum { kX, kOut, kSegments, kTensors };  // what has rows
  const void* x;
  void* out;
  void* workspace;                 // if splits > 1: the state of each split and output
  int64_t rows, inner, out_inner;  // out_inner: the stride of out between the neighbours of a row
  int64_t segments, cols, x_step;
  int64_t tiles;   // row: parts of a run that a group takes at once; column: of `inner`, a block
  int64_t units;   // what the splits of an output share
  int64_t splits;  // blocks that share an output
  Divider by_splits, by_tiles, by_inner;
  int64_t repeats;  // how often a sum counts its elements: axes without a stride are left out
  float count;      // elements of a reduction
  float divisor;    // of the sum of squared deviations
  OutputType out_type = OutputType::own;  // see converts
  int64_t step[kTensors];
};

// Compile time. `group` threads share a row, or the neighbours of a row; `unroll` accesses of
// `vector` elements are in flight in each.
struct Config {
  Operation operation = Operation::sum;
  int threads = 256;
  int group = 1;
  int vector = 1;
  int unroll = 1;
  int nested = 0;  // rows or segments do not merge into one axis
  int shared = 0;  // several blocks share an output
};

}  // namespace tensorcraft::kernel::reduce
