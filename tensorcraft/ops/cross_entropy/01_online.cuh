// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a warp or a block shares a row and reads it once, maximum and sum in one walk, with
// C.loads accesses of 16 bytes in flight a thread: classes * sizeof(T) bytes a row where naive
// takes twice as many, one element at a time. Nothing but one number is written, so rows of any
// alignment do: the elements before the first multiple of 16 bytes and behind the last go one by
// one. Demands: classes that are neighbours.
#include "tensorcraft/ops/cross_entropy/row.cuh"

namespace tensorcraft::kernel::cross_entropy {

inline constexpr int kBatch = 8;  // values between two looks at the maximum

// Adds what one thread of the group reads of a row's 16-byte units.
template <class T, Config C>
TC_DEVICE void add_units(ExpSum& part, const T* units, int64_t count, int rank) {
  constexpr int kVector = kVectorSize<T>, kStep = C.group * kVector, kTogether = kBatch / kVector;
  static_assert(C.loads % kTogether == 0);
#pragma unroll 1  // a batch more at a time would take the registers of other threads
  for (int64_t first = int64_t(rank) * kVector; first < count; first += kStep * C.loads) {
    AlignedVector<T, kVector> loaded[C.loads];
#pragma unroll
    for (int l = 0; l < C.loads; ++l) {
      const int64_t at = first + l * kStep;
      if (at < count) {
        loaded[l] = bit_cast<AlignedVector<T, kVector>>(ptx::ld_global_nc_v4(units + at));
      } else {  // exp(-inf) adds nothing
        for (int e = 0; e < kVector; ++e) loaded[l][e] = T(-kInfinity);
      }
    }
#pragma unroll
    for (int l = 0; l < C.loads; l += kTogether) {
      float v[kBatch];
      for (int i = 0; i < kBatch; ++i) v[i] = float(loaded[l + i / kVector][i % kVector]);
      part.add(v);
    }
  }
}

template <class T, class Id, Config C>
TC_DEVICE void online(const Params& p) {
  auto& scratch = static_shared<BlockReduce<float>>();
  constexpr int kVector = kVectorSize<T>, kRows = C.threads / C.group;
  const int rank = int(threadIdx.x % C.group);
  for (int64_t index = int64_t(blockIdx.x) * kRows + threadIdx.x / C.group; index < p.rows;
       index += int64_t(gridDim.x) * kRows) {
    const Row<T, Id, C> row(p, index);
    // A row that is read in one batch does not wait for its target: that takes as long as the row.
    if (C.group == Config{}.group && row.is_idle()) {
      if (rank == 0) row.write_idle();
      continue;
    }
    const T* x = row.logits();
    const auto past = int(reinterpret_cast<uint64_t>(x) % kVectorBytes / sizeof(T));
    const int64_t most = (kVector - past) % kVector, head = most < p.classes ? most : p.classes;
    const int64_t units = (p.classes - head) / kVector * kVector;
    ExpSum part = ExpSum::of_nothing();
    add_units<T, C>(part, x + head, units, rank);
    if (units < p.classes) {
      // Fewer than a warp are left: the head and, counted on from it, what is behind the units.
      const int64_t single = rank < head ? rank : units + rank;
      const float last[1] = {single < p.classes ? float(x[single]) : -kInfinity};
      part.add(last);
    }
    const float picked = rank == 0 ? row.picked() : 0.f;  // the target came with the row
    const ExpSum total = part.over_group<C.group>(scratch);
    if (rank == 0) row.write(total, picked);
  }
}

}  // namespace tensorcraft::kernel::cross_entropy
