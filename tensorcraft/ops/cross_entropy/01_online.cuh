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

// A word of -inf, known when the kernel is compiled.
TC_DEVICE uint32_t minus_infinity(float) { return 0xff800000u; }
TC_DEVICE uint32_t minus_infinity(bf16) { return 0xff80ff80u; }
TC_DEVICE uint32_t minus_infinity(f16) { return 0xfc00fc00u; }

// Adds what one thread of the group reads of a row's `count` 16-byte units.
template <class T, Config C>
TC_DEVICE void add_units(LongExpSum& part, const T* units, int count, int rank) {
  constexpr int kVector = kVectorSize<T>, kTogether = kBatch / kVector;
  static_assert(C.loads % kTogether == 0);
  const T* own = units + rank * kVector;
#pragma unroll 1  // a batch more at a time would take the registers of other threads
  for (int left = count - rank; left > 0; left -= C.group * C.loads) {
    Packed<T, kVector> loaded[C.loads];
#pragma unroll
    for (int l = 0; l < C.loads; ++l) {
      for (uint32_t& word : loaded[l].words) word = minus_infinity(T{});  // exp of it adds nothing
      if (l * C.group < left)
        loaded[l] = bit_cast<Packed<T, kVector>>(ptx::ld_global_nc_v4(own + l * C.group * kVector));
    }
    own += C.group * C.loads * kVector;
#pragma unroll
    for (int l = 0; l < C.loads; l += kTogether) {
      float v[kTogether][kVector];
      for (int t = 0; t < kTogether; ++t) to_floats(v[t], loaded[l + t]);
      part.add(reinterpret_cast<const float(&)[kBatch]>(v));
    }
  }
}

struct Online {
  template <class T, class Id, Config C>
  TC_DEVICE static void run(const RowParams<Params, C>& p) {
    auto& scratch = static_shared<BlockReduce<ExpSum>>();
    constexpr int kVector = kVectorSize<T>;
    const int rank = int(threadIdx.x % C.group);
    const uint32_t index = blockIdx.x * (C.threads / C.group) + threadIdx.x / C.group;
    if (index >= uint32_t(p.rows)) return;
    const Row<T, Id, C> row(p, index);
    // A row that is read in one batch does not wait for its target: that takes as long as the row.
    if (C.group == Config{}.group && row.is_idle()) {
      if (rank == 0) row.write_idle();
      return;
    }
    const T* x = row.logits();
    const auto past = int(reinterpret_cast<uint64_t>(x) % kVectorBytes / sizeof(T));
    const int most = (kVector - past) % kVector, head = most < p.classes ? most : int(p.classes);
    const int units = int(uint64_t(p.classes - head) / kVector);
    // Fewer than a warp lie beside the units: the head and, counted on from it, what is behind
    // them.
    const int64_t single = rank < head ? rank : int64_t(units) * kVector + rank;
    LongExpSum part;
    if (single < p.classes) part.all = ExpSum::of(float(x[single]));
    add_units<T, C>(part, x + head, units, rank);
    const float picked = rank == 0 ? row.picked() : 0.f;  // the target came with the row
    __syncwarp();  // or each shuffle is compiled twice, once for a warp whose threads are apart
    const ExpSum total = part.all.over_group<C.group>(scratch);
    if (rank == 0) row.write(total, picked);
  }
};

}  // namespace tensorcraft::kernel::cross_entropy
