// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/copy.h"

namespace tensorcraft::kernel::append_kv {

// A paged cache of keys or of values. Strides count elements.
struct Cache {
  void* data;
  const float* scale;  // a number for all, or for each head, or each token and head; null: 1
  int64_t scale_head;  // its stride
  int64_t block, row, head, step;
};

// The heads of a token in q, k or v, or what k has behind its elements.
struct Heads {
  const void* in;
  int64_t head, step;  // strides
  int32_t count, dim;
};

// Run time. The rows of the tensors are tokens.
struct Params {
  enum { kQ, kQOut, kK, kKPe, kV, kSlots, kPositions, kKScale, kVScale, kTensors };
  Cache k_cache, v_cache;
  Heads q, k, k_pe, v;  // of k_pe and v no heads: they are not given
  void* q_out;
  int64_t q_out_head, q_out_step;
  const void *slots, *positions;
  const void *cos, *sin;  // null: nothing rotates
  int64_t cos_row, cos_step, sin_row, sin_step;
  const void *q_weight, *k_weight;  // null: not normalised
  int64_t tokens, places, max_seq;  // places: slots of the cache
  int32_t block_size;
  int32_t half;         // pairs of a head that rotate
  int32_t rotates_end;  // they are its last elements, not its first
  int32_t wide_slots, wide_positions;
  float eps;
  int64_t step[kTensors];
};

// Elements of a row of k_cache, and of a head of q.
TC_HOST_DEVICE int row_dim(const Params& p) { return p.k.dim + p.k_pe.dim; }
// The first element of such a row that rotates.
TC_HOST_DEVICE int rotated_from(const Params& p) {
  return p.rotates_end ? row_dim(p) - 2 * p.half : 0;
}

struct Config {
  int threads = 256;
  int lanes = 1;       // vectorized: threads next to each other in a head
  int heads = 1;       // vectorized: heads of a token that are worked on side by side
  int rotates = 0;     // above naive
  int normalizes = 0;  // above naive
  int nested = 0;      // the tokens of a tensor lie along more than one axis
};

}  // namespace tensorcraft::kernel::append_kv
