// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"
#include "tensorcraft/device/index.h"

namespace tensorcraft::kernel::scatter {

// How an update and what its place has already become one; none: the update stands there.
enum class Operation : int { none, add, multiply, max, min };

// Where a line, the elements along the axis at one position of the others, begins in each tensor.
struct Offsets {
  int64_t out, x, index, update;
};

// The axes but the one that is indexed, with the strides of all tensors; those that all of them
// merge are one. Unused entries are 0.
struct Lines {
  static constexpr int kMax = 7;
  int64_t size[kMax], out_stride[kMax], x_stride[kMax], index_stride[kMax], update_stride[kMax];
  int32_t count;

  // Where line i begins, counted along the last axis first. The outermost axis needs no division.
  template <class Index>
  TC_HOST_DEVICE Offsets offsets(Index i) const {
    Offsets at{0, 0, 0, 0};
#if defined(__CUDA_ARCH__)
#pragma unroll 1  // unrolled, the divisions are most of a kernel's compile time
#endif
    for (int k = count - 1; k > 0; --k) {
      const Index rest = i / Index(size[k]);
      add(at, k, int64_t(i - rest * Index(size[k])));
      i = rest;
    }
    if (count > 0) add(at, 0, int64_t(i));
    return at;
  }

 private:
  TC_HOST_DEVICE void add(Offsets& at, int axis, int64_t n) const {
    at.out += n * out_stride[axis];
    at.x += n * x_stride[axis];
    at.index += n * index_stride[axis];
    at.update += n * update_stride[axis];
  }
};

// Run time: on each line, out is x, and updates[j] goes to place indices[j] in the order of j.
// Strides count elements.
struct Params {
  const void* x;
  const void* indices;
  const void* updates;
  void* out;
  Lines lines;
  int64_t num_lines, size, num_updates;  // lines; places of one; updates of one
  int64_t out_step, x_step, index_step, update_step;
  Operation operation;
  int32_t index_bytes;    // 4 or 8
  int32_t is_in_place;    // out is x
  int32_t is_axis_inner;  // neighbours in memory lie on one line
  // A tile has 2^log2_lines lines of 2^log2_places places. claimed: a block has one; panels: it is
  // a panel, whose lines are whole.
  int32_t log2_lines, log2_places;
  uint32_t axis_tiles;  // claimed: of one line
  // panels: how many there are, and the blocks of one that claim its places and that write them
  uint32_t panels, claiming_blocks, writing_blocks;
  void* workspace;  // panels: counts and claims, 0 when the kernel starts
};

// claimed: rounds of combined updates, before threads finish what is left of a place each.
inline constexpr int kMaxRounds = 16;

// panels: claims of so many are in memory at once; updates and accesses of a thread.
inline constexpr int kPanelsAtOnce = 3, kUpdatesOfThread = 16, kUnitsOfThread = 2;

// Where in the workspace the claims begin: after a ticket and two counts of blocks for each panel.
TC_HOST_DEVICE constexpr int64_t claims_at(uint32_t panels) {
  return round_up((1 + 2 * int64_t(panels)) * int64_t(sizeof(uint32_t)), int64_t(256));
}

// Compile time.
struct Config {
  int threads = 256;
  int entries = 0;   // claimed: of the table, one for a place
  int vector = 1;    // claimed, panels: neighbours that are moved at once
  int combines = 0;  // claimed: updates are combined, not only placed
  int wide = 0;      // naive: 32 bits do not count the elements
};

template <Config C>
using Index = Count<C.wide != 0>;

}  // namespace tensorcraft::kernel::scatter
