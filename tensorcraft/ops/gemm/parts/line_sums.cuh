// SPDX-License-Identifier: Apache-2.0
#pragma once
// The sums of the rows of A and of the columns of B in int8, from which an epilogue knows what zero
// points take from a product. Lines along k take a warp each, others a warp's lanes 32 at a time.
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/gemm/parts/tile.cuh"

namespace tensorcraft::kernel::gemm {

struct LineSums {
  template <LineSumsConfig C>
  TC_DEVICE static void run(const LineSumsParams& p) {
    const int64_t of_a = blocks_of<C>(p.of[0]);
    const bool is_b = blockIdx.x >= of_a;
    const LinesToSum& x = p.of[is_b];
    const int64_t first = (blockIdx.x - (is_b ? of_a : 0)) * lines_of_block(C, x.is_along_k != 0);
    if (x.is_along_k)
      sum_along<C>(p, x, first);
    else
      sum_across<C>(p, x, first);
  }

 private:
  template <LineSumsConfig C>
  TC_DEVICE static int64_t blocks_of(const LinesToSum& x) {
    return div_ceil(x.all_lines, lines_of_block(C, x.is_along_k != 0));
  }
  TC_DEVICE static const int8_t* line_at(const LineSumsParams& p, const LinesToSum& x,
                                         int64_t line) {
    const int64_t entry = line / x.lines;
    return batch_entry<const int8_t>(p, x.in, uint32_t(entry)) +
           (line - entry * x.lines) * x.in.row_stride;
  }
  TC_DEVICE static void store(const LineSumsParams& p, const LinesToSum& x, int64_t line,
                              int32_t sum) {
    static_cast<int32_t*>(p.workspace)[x.out_at + line] = sum;
  }

  template <LineSumsConfig C>
  TC_DEVICE static void sum_along(const LineSumsParams& p, const LinesToSum& x, int64_t first) {
    const int lane = int(threadIdx.x) % 32;
    const int64_t line = first + threadIdx.x / 32;
    if (line >= x.all_lines) return;
    const int8_t* const from = line_at(p, x, line);
    const int64_t whole = x.has_words ? p.k / kVectorBytes * kVectorBytes : 0;
    int32_t sum = 0;
    for (int64_t k = lane * kVectorBytes; k < whole; k += 32 * kVectorBytes) {
      const auto codes = load_vector<kVectorBytes>(from + k);
#pragma unroll
      for (int i = 0; i < kVectorBytes; ++i) sum += codes[i];
    }
    for (int64_t k = whole + lane; k < p.k; k += 32) sum += from[k * x.in.col_stride];
#pragma unroll
    for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(kFullWarp, sum, other);
    if (lane == 0) store(p, x, line, sum);
  }

  // Each warp has every so many elements of the same 32 lines.
  template <LineSumsConfig C>
  TC_DEVICE static void sum_across(const LineSumsParams& p, const LinesToSum& x, int64_t first) {
    constexpr int kWarps = C.threads / 32;
    struct Parts {
      int32_t at[kWarps][32];
    };
    auto& parts = static_shared<Parts>();
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int64_t line = first + lane;
    int32_t sum = 0;
    if (line < x.all_lines) {
      const int8_t* const from = line_at(p, x, line);
      for (int64_t k = warp; k < p.k; k += kWarps) sum += from[k * x.in.col_stride];
    }
    parts.at[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || line >= x.all_lines) return;
    for (int i = 1; i < kWarps; ++i) sum += parts.at[i][lane];
    store(p, x, line, sum);
  }
};

}  // namespace tensorcraft::kernel::gemm
