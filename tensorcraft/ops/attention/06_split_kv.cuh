// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: few queries, as a decode has them, leave tiles of 64 rows empty and most
// multiprocessors idle. Here the queries of heads that share keys are the rows of a tile of 16, and
// the keys are divided into parts of kPartKeys for as many blocks; a second kernel combines what
// they find in the order of the parts:
//   blocks of persistent:  batch x heads          here: batch x heads_k x parts
//   reads of a key:        heads / heads_k        here: 1
// A part is as long in every call, so the bits of a request do not depend on what else is in the
// batch. Demands: sm_80, 16-bit elements, at most 16 queries, no mask and no ragged batch, head_dim
// in steps of 32, that of v in steps of 64, rows that start at 16-byte boundaries.
#include "tensorcraft/device/split_keys.cuh"
#include "tensorcraft/ops/attention/request.cuh"

namespace tensorcraft::kernel::attention {

// Keys and values by strides. Nothing behind the keys in use is read.
template <class T>
class StridedKeys {
 public:
  TC_DEVICE StridedKeys(const T* k, const T* v, int64_t k_row, int64_t v_row, int keys)
      : k_(k), v_(v), k_row_(k_row), v_row_(v_row), last_(keys - 1) {}

  TC_DEVICE static bool find(int) { return true; }
  TC_DEVICE const T* key(int j) const { return k_ + (j < last_ ? j : last_) * k_row_; }
  TC_DEVICE const T* value(int j) const { return v_ + j * v_row_; }
  TC_DEVICE static bool has_scales() { return false; }
  TC_DEVICE static float key_scale(int) { return 1.f; }
  TC_DEVICE static float value_scale(int) { return 1.f; }

 private:
  const T *k_, *v_;
  int64_t k_row_, v_row_;
  int last_;
};

struct SplitKv {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr PartShape kShape{.warps = C.threads / 32,
                               .head_dim = C.head_dim,
                               .value_dim = C.value_dim,
                               .has_softcap = C.options >= kSoftcap};
    const int key_heads = p.heads / p.group, tiles = div_ceil(p.group * p.seq_q, kPartRows);
    const SplitBlock block(int(blockIdx.x), p.v_dim / C.value_dim, p.num_parts, tiles, key_heads);
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
        .window = request.window};
    const auto of_head = [&](const void* data, const Strides& s) {
      return static_cast<const T*>(data) + b * s.batch + block.key_head * s.head;
    };
    split_keys<AttentionPart<T, T, kShape, StridedKeys<T>>>(
        rows, block.tile * kPartRows, block.part, slice, key_parts(p), {p.scale, p.softcap}, [&] {
          return StridedKeys<T>(of_head(p.k, p.k_strides), of_head(p.v, p.v_strides) + slice,
                                p.k_strides.row, p.v_strides.row, request.keys);
        });
  }
};

}  // namespace tensorcraft::kernel::attention
