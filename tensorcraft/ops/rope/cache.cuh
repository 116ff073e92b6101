// SPDX-License-Identifier: Apache-2.0
#pragma once
// rope_cache: one thread, one position and pair; neighbours write next to each other. It runs once
// for a model, so it has no second rung.
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/ops/rope/angle.cuh"

namespace tensorcraft::kernel::rope {

struct Cache {
  template <class T, CacheConfig C>
  TC_DEVICE static void run(const CacheParams& p) {
    const int64_t i = int64_t(blockIdx.x) * C.threads + threadIdx.x;
    const int64_t row = i / p.half;
    const int pair = int(i % p.half);
    if (row >= p.count) return;
    const int64_t position = integer_at(p.positions, p.position_map.offset(row), p.wide_positions);
    const Rotation r = rotation(position, frequency(pair, p.log2_step));
    T* out = static_cast<T*>(p.out) + row * p.out_row + pair * p.out_step;
    out[0] = T(r.cos);
    out[p.out_half] = T(r.sin);
  }
};

}  // namespace tensorcraft::kernel::rope
