// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: few queries, as a decode has them, leave tiles of 64 rows empty and most
// multiprocessors idle. Here the queries of heads that share keys are the rows of a tile of 16 to
// 64, and the keys are divided into parts for as many blocks; a second kernel combines what they
// find in the order of the parts:
//   blocks of persistent:  batch x heads          here: batch x heads_k x parts
//   reads of a key:        heads / heads_k        here: 1
// How long a part is follows from the request's length alone, so its bits do not depend on what
// else is in the batch. Demands: sm_80, 16-bit elements, at most 16 queries, no mask and no ragged
// batch, head_dims in steps of 8, rows that start at 16-byte boundaries.
#include "tensorcraft/ops/attention/combine.cuh"

namespace tensorcraft::kernel::attention {

// Keys and values by strides.
template <class T>
struct StridedKeys {
  const T *keys, *values;
  int64_t key_row, value_row;

  TC_DEVICE StepPlace look_up(int j) const { return {j * key_row, j * value_row}; }
};

struct SplitKv {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr PartShape kShape{.row_tiles = C.block_m / kTileRows,
                               .warps = C.threads / 32,
                               .stages = C.stages,
                               .head_dim = C.head_dim,
                               .value_dim = C.value_dim,
                               .has_softcap = C.options >= kSoftcap,
                               .is_padded = C.padded != 0};
    const int key_heads = p.heads / p.group, tiles = div_ceil(p.group * p.seq_q, C.block_m);
    const SplitBlock block(int(blockIdx.x), div_ceil(p.v_dim, C.value_dim), key_parts(p).runs(),
                           tiles, key_heads);
    const int b = block.request, head = block.key_head * p.group;
    const int slice = block.slice * C.value_dim;
    const Request request = whole_request(p, b);
    const SplitRows<T> rows{
        .q = static_cast<const T*>(p.q) + b * p.q_strides.batch + head * p.q_strides.head,
        .q_row = p.q_strides.row,
        .row = (int64_t(b) * p.heads + head) * p.seq_q,
        .q_head = p.q_strides.head,
        .row_row = 1,
        .row_head = p.seq_q,
        .group = p.group,
        .queries = p.seq_q,
        .keys = request.keys,
        .head_dim = p.head_dim,
        .window = request.window};
    const auto of_head = [&](const void* data, const Strides& s) {
      return static_cast<const T*>(data) + b * s.batch + block.key_head * s.head;
    };
    split_keys<AttentionPart<T, T, kShape, StridedKeys<T>>>(
        rows, block.tile * C.block_m, block.run, slice, key_parts(p), {p.scale, p.softcap},
        [&] {
          return StridedKeys<T>{of_head(p.k, p.k_strides), of_head(p.v, p.v_strides) + slice,
                                p.k_strides.row, p.v_strides.row};
        },
        [&](int64_t row) { return result_row<T>(p, row); });
  }
};

}  // namespace tensorcraft::kernel::attention
