// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies run beside the multiply-adds: cp.async brings the panels of later steps into a ring of
// stages while this step computes, and takes no registers on the way.
//
// A step of n multiply-adds a thread hides a copy that takes up to (stages - 2) n clocks and more.
// A thread's 8 x 8 sums need (8 + 8) / 4 = 4 shared loads of 16 bytes for 64 multiply-adds; those
// of the next k are issued before this k is multiplied. 8 x 16 sums need fewer, but 512 threads of
// a multiprocessor hide each other's latency and 256 do not: measured, they lose 8 %.
// A warp's threads form 8 x 4, so its loads read 128 and 64 bytes without conflicts.
// An operand whose unit stride runs along k is transposed on its way, 4 bytes a copy; the other
// one moves 16 bytes if its lines allow, else 4.
// It demands float32 operands, since a copy in flight cannot convert, with a unit stride each.
#include "tensorcraft/device/copy_ring.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/gemm/parts/quads.cuh"

namespace tensorcraft::kernel::gemm {

template <Config C>
struct AsyncShared {
  struct alignas(kVectorBytes) Stage {
    float a[C.block_k][C.block_m + kQuad], b[C.block_k][C.block_n + kQuad];
  };
  Stage stages[C.stages];
};

// A thread's share of the copies of one operand's panels, panel[k][i]. AlongK: k has stride 1.
template <Config C, bool AlongK, int Vector, int Size>
struct PanelCopier {
  // Neighbouring threads go along the unit stride. Along k only 8 of them do: panel rows are 4
  // banks apart, so 8 values of k beside 4 of i meet all 32 banks.
  static constexpr int move = AlongK ? 1 : Vector;
  static constexpr int across = AlongK ? 8 : Size / move;  // threads along the unit stride
  static constexpr int line_step = C.threads / across;
  static constexpr int lines = AlongK ? Size : C.block_k;
  static_assert(C.threads % across == 0 && C.block_k % 8 == 0);

  const float* source;
  int64_t stride;
  int line, start;

  TC_DEVICE PanelCopier(const float* from, int64_t line_stride)
      : stride(line_stride), line(threadIdx.x / across), start(threadIdx.x % across * move) {
    source = from + line * stride + start;
  }

  // Starts copying `k_left` x `left` elements inside the matrix; the rest of the panel becomes 0.
  TC_DEVICE void copy(float (&panel)[C.block_k][Size + kQuad], int k_left, int left) const {
#pragma unroll
    for (int n = 0; n < div_ceil(lines, line_step); ++n) {
      const int at = line + n * line_step;
      if (lines % line_step != 0 && at >= lines) break;
      const float* from = source + n * line_step * stride;
      if constexpr (AlongK) {
#pragma unroll
        for (int k = 0; k < C.block_k; k += across) {
          const bool inside = at < left && start + k < k_left;
          ptx::cp_async_ca_4(&panel[start + k][at], from + k, inside ? 4 : 0);
        }
      } else if constexpr (Vector == kQuad) {
        ptx::cp_async_cg_16(&panel[at][start], from, at < k_left && start < left ? 16 : 0);
      } else {
        ptx::cp_async_ca_4(&panel[at][start], from, at < k_left && start < left ? 4 : 0);
      }
    }
  }
};

struct Async {
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    constexpr int warps_n = C.block_n / C.warp_n;
    constexpr bool a_along_k = C.a_layout == Layout::row_major;
    constexpr bool b_along_k = C.b_layout == Layout::column_major;
    static_assert(C.warp_m == C.thread_m * kAsyncLanesM && C.warp_n == C.thread_n * kAsyncLanesN);
    static_assert(C.threads == C.block_m / C.warp_m * warps_n * 32, "the warps cover the tile");
    static_assert(C.thread_m % kQuad == 0 && C.thread_n % kQuad == 0);
    static_assert(sizeof(AsyncShared<C>) == async_shared_bytes(C));
    auto& shared = dynamic_shared<AsyncShared<C>>();
    const Tile<C> tile = block_tile<C>(p);
    if (is_none(tile)) return;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // Lanes that differ by 1, 16 or 17 share a row, by 2 or 4 a column, so the halves of a warp
    // read the same few addresses at a time.
    const int row = warp / warps_n * C.warp_m + lane / 2 % kAsyncLanesM * kQuad;
    const int col = warp % warps_n * C.warp_n + (lane / 16 * 2 + lane % 2) * kQuad;
    const int rows = min_of(row_end(p, tile) - tile.row, C.block_m);
    const int cols = min_of(p.n - tile.col, C.block_n);
    const int64_t begin = k_begin(tile), end = k_end(p, tile);

    PanelCopier<C, a_along_k, C.a_vector, C.block_m> a(a_of_tile<const T>(p, tile),
                                                       a_along_k ? p.a.row_stride : p.a.col_stride);
    PanelCopier<C, b_along_k, C.b_vector, C.block_n> b(b_of_tile<const T>(p, tile),
                                                       b_along_k ? p.b.col_stride : p.b.row_stride);
    int64_t to_copy = begin;  // the first k that is not on its way
    const auto copy = [&](int stage) {
      if (to_copy >= end) return;
      const int left = min_of(end - to_copy, C.block_k);
      a.copy(shared.stages[stage].a, left, rows);
      b.copy(shared.stages[stage].b, left, cols);
      a.source += C.block_k * p.a.col_stride;
      b.source += C.block_k * p.b.row_stride;
      to_copy += C.block_k;
    };
    CopyRing<C.stages> ring;
    float sums[C.thread_m][C.thread_n] = {};
#pragma unroll
    for (int i = 0; i < C.stages - 1; ++i) ring.fill(copy);
    for (int64_t k0 = begin; k0 < end; k0 += C.block_k) {
      const auto& stage = shared.stages[ring.next()];
      float x[2][C.thread_m], y[2][C.thread_n];  // of this k and of the next
      load_quads(x[0], &stage.a[0][row], kAsyncLanesM * kQuad);
      load_quads(y[0], &stage.b[0][col], kAsyncLanesN * kQuad);
      ring.fill(copy);
#pragma unroll
      for (int k = 0; k < C.block_k; ++k) {
        if (k + 1 < C.block_k) {
          load_quads(x[(k + 1) % 2], &stage.a[k + 1][row], kAsyncLanesM * kQuad);
          load_quads(y[(k + 1) % 2], &stage.b[k + 1][col], kAsyncLanesN * kQuad);
        }
        add_outer_product(sums, x[k % 2], y[k % 2]);
      }
    }
    ring.finish();
    const Epilogue<T, Out, C> epilogue(p, tile);
#pragma unroll
    for (int i = 0; i < C.thread_m; ++i) {
      const int64_t out_row = tile.row + row + i / kQuad * kAsyncLanesM * kQuad + i % kQuad;
#pragma unroll
      for (int j = 0; j < C.thread_n; j += kQuad) {
        const float quad[kQuad] = {sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]};
        epilogue.store(quad, out_row, tile.col + col + j * kAsyncLanesN);
      }
    }
  }
};

}  // namespace tensorcraft::kernel::gemm
