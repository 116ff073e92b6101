// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: both products run on tensor cores (mma.sync m16n8k16, 4,096 FLOP an instruction).
// A warp owns 16 or 32 query rows; scores, maxima and the output stay in its registers, and the
// scores of two 8-key columns are, packed to 16 bits, exactly the A operand of 16 keys of P V: the
// weights never touch shared memory. Tiles of K and V come by cp.async into the half of a double
// buffer that is not being read, so copies run under the products. expf(scale * (s - m)) is one
// fused multiply-add and one ex2; only tiles that cross a key limit or the causal diagonal test it.
// Rows are filled up with zeros to a multiple of 32 elements. A block has at most 256 values of a
// row: longer ones are slices for several blocks, each of which computes the scores.
// Demands: sm_80, 16-bit elements, head_dims in steps of 8, rows that start at 16-byte boundaries,
// scale > 0.
#include "tensorcraft/device/base.h"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/logit.cuh"
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/device/ptx/cp_async.cuh"
#include "tensorcraft/device/ptx/ldmatrix.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tile/multiply_add.cuh"
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/device/attention/logits.cuh"
#include "tensorcraft/device/attention/request.cuh"
#include "tensorcraft/ops/attention/params.h"

namespace tensorcraft::kernel::attention {

using Chunk = Vec4<uint32_t>;  // 16 bytes: 8 elements

// A tile in shared memory: rows of 16-byte chunks. The chunk's place is permuted by the row, so the
// eight rows that one 8x8 matrix load touches are in different banks.
template <int kHeadDim>
struct Tile {
  static constexpr int kChunks = kHeadDim / 8;
  static_assert(kChunks % 4 == 0);
  TC_DEVICE static int at(int row, int chunk) {
    return row * kChunks + (chunk ^ (kChunks % 8 == 0 ? row & 7 : (row >> 1) & 3));
  }
};

template <Config C>
struct TensorCoreShared {
  Chunk q[C.block_m * Tile<query_dim(C)>::kChunks];
  Chunk k[2][C.block_n * Tile<C.head_dim>::kChunks];
  Chunk v[2][C.block_n * Tile<dim_of_values(C)>::kChunks];
};

// Starts the copy of rows [first, first + kRows), of `length` elements each; rows from `end` on
// become 0, so that nothing past the last key is read and a weight of 0 never meets a NaN, and so
// does what a row lacks.
template <class T, int kRows, int kDim, Config C>
TC_DEVICE void copy_rows(Chunk* tile, const T* source, int64_t stride, int first, int end,
                         int length) {
  using Rows = Tile<kDim>;
  constexpr int kAcross = Rows::kChunks % 8 == 0 ? 8 : 4;  // threads that share a row
  constexpr int kRowStep = C.threads / kAcross;
  static_assert(kRows % kRowStep == 0);
  const int chunk = threadIdx.x % kAcross, row = threadIdx.x / kAcross;
  const T* from = source + (first + row) * stride + chunk * 8;
#pragma unroll
  for (int r = 0; r < kRows; r += kRowStep, from += kRowStep * stride) {
    const bool inside = first + row + r < end;
#pragma unroll
    for (int c = 0; c < Rows::kChunks; c += kAcross) {
      const bool is_there = inside && (chunk + c) * 8 < length;
      ptx::cp_async_cg_16(&tile[Rows::at(row + r, chunk + c)], is_there ? from + c * 8 : source,
                          is_there ? 16 : 0);
    }
  }
}

// The rows of one warp: kTiles times 16. In the accumulator of m16n8, lane t holds columns
// 2 (t % 4) and the next of rows t / 4 (values 0, 1) and t / 4 + 8 (values 2, 3).
template <class T, Config C>
struct WarpRows {
  static constexpr int kTiles = C.block_m / (C.threads / 32) / 16;
  static constexpr int kDepth = C.head_dim / 16, kKeys = C.block_n / 16;
  static constexpr int kValues = dim_of_values(C) / 16;
  static constexpr bool kKeepQuery = kTiles == 1 && C.head_dim <= 128;  // in 32 registers at most
  static_assert(kTiles * (C.threads / 32) * 16 == C.block_m);
  using Rows = Tile<C.head_dim>;
  using Values = Tile<dim_of_values(C)>;

  uint32_t query[kKeepQuery ? kTiles : 1][kKeepQuery ? kDepth : 1][4];
  float out[kTiles][2 * kValues][4];
  float score[kTiles][2 * kKeys][4];
  float top[kTiles][2], sum[kTiles][2];  // per row: running maximum (unscaled) and sum of weights

  TC_DEVICE static int lane() { return threadIdx.x % 32; }
  TC_DEVICE static int first_row() { return int(threadIdx.x / 32) * 16 * kTiles; }

  TC_DEVICE void start(const Chunk* q) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      top[t][0] = top[t][1] = -kInfinity;
      sum[t][0] = sum[t][1] = 0.f;
#pragma unroll
      for (int c = 0; c < 2 * kValues; ++c)
        for (int e = 0; e < 4; ++e) out[t][c][e] = 0.f;
      if constexpr (kKeepQuery) {
#pragma unroll
        for (int d = 0; d < kDepth; ++d) load_query(query[t][d], q, t, d);
      }
    }
  }

  // The A operand of rows 16 t .. and elements 16 d ..
  TC_DEVICE static void load_query(uint32_t (&a)[4], const Chunk* q, int t, int d) {
    ptx::ldmatrix_x4(a, &q[Rows::at(first_row() + 16 * t + lane() % 16, 2 * d + lane() / 16)]);
  }

  // score = Q K^T: the rows of K are the columns of the B operand.
  TC_DEVICE void multiply_keys(const Chunk* q, const Chunk* k) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
      for (int c = 0; c < 2 * kKeys; ++c)
        for (int e = 0; e < 4; ++e) score[t][c][e] = 0.f;
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      uint32_t a[kTiles][4];
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        if constexpr (kKeepQuery) {
          for (int e = 0; e < 4; ++e) a[t][e] = query[t][d][e];
        } else {
          load_query(a[t], q, t, d);
        }
      }
#pragma unroll
      for (int j = 0; j < kKeys; ++j) {
        uint32_t b[4];
        const int key = 16 * j + lane() / 16 * 8 + lane() % 8;
        ptx::ldmatrix_x4(b, &k[Rows::at(key, 2 * d + lane() / 8 % 2)]);
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
          multiply_add<T>(score[t][2 * j], a[t], {b[0], b[1]});
          multiply_add<T>(score[t][2 * j + 1], a[t], {b[2], b[3]});
        }
      }
    }
  }

  // Hides keys that a row does not see of the tile from `key` on: those in front of its first one,
  // or behind its last one.
  template <bool in_front>
  TC_DEVICE void mask(const QueryTile& queries, int key) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const KeyRange seen = queries.seen(first_row() + 16 * t + 8 * half + lane() / 4);
        const int limit = (in_front ? seen.begin : seen.end) - key - 2 * (lane() % 4);
#pragma unroll
        for (int c = 0; c < 2 * kKeys; ++c)
          for (int e = 0; e < 2; ++e)
            if ((8 * c + e < limit) == in_front) score[t][c][2 * half + e] = -kInfinity;
      }
    }
  }

  // Scores of the tile from `key` on become logits, whose scale is 1.
  TC_DEVICE void make_logits(const Params& p, const QueryTile& queries, int b, int h, int key) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = first_row() + 16 * t + 8 * half + lane() / 4;
        to_logits<T, C, 4 * kKeys>(
            p, queries, b, h, row,
            [&](int i) -> float& { return score[t][i / 2][2 * half + i % 2]; },
            [&](int i) { return key + 8 * (i / 2) + 2 * (lane() % 4) + i % 2; });
      }
    }
  }

  TC_DEVICE static void subtract(float (&scores)[2 * kKeys][4], int half, float base) {
#pragma unroll
    for (int c = 0; c < 2 * kKeys; ++c) {
      scores[c][2 * half] -= base;
      scores[c][2 * half + 1] -= base;
    }
  }

  // Turns scores into weights and rescales what was summed under the old maximum.
  TC_DEVICE void weigh(float scale_log2) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float next = top[t][half];
#pragma unroll
        for (int c = 0; c < 2 * kKeys; ++c)
          next = fmaxf(next, fmaxf(score[t][c][2 * half], score[t][c][2 * half + 1]));
        next = fmaxf(next, __shfl_xor_sync(kFullWarp, next, 1));
        next = fmaxf(next, __shfl_xor_sync(kFullWarp, next, 2));
        const float base = next == -kInfinity ? 0.f : next;  // nothing visible yet
        const float keep = exp2_fast((top[t][half] - base) * scale_log2);
        top[t][half] = next;
        float shift = base * scale_log2;
        if (fabsf(shift) > kLargestFusedShift) {
          subtract(score[t], half, base);
          shift = 0.f;
        }
        float part = 0.f;
#pragma unroll
        for (int c = 0; c < 2 * kKeys; ++c) {
#pragma unroll
          for (int e = 2 * half; e < 2 * half + 2; ++e) {
            score[t][c][e] = exp2_fast(fmaf(score[t][c][e], scale_log2, -shift));
            part += score[t][c][e];
          }
        }
        sum[t][half] = fmaf(sum[t][half], keep, part);
#pragma unroll
        for (int c = 0; c < 2 * kValues; ++c) {
          out[t][c][2 * half] *= keep;
          out[t][c][2 * half + 1] *= keep;
        }
      }
    }
  }

  // out += weights V: V is keys by elements, so its B operand is loaded transposed.
  TC_DEVICE void multiply_values(const Chunk* v) {
#pragma unroll
    for (int j = 0; j < kKeys; ++j) {
      uint32_t a[kTiles][4];
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float(&s)[4] = score[t][2 * j + e / 2];
          a[t][e] = pack_pair(s[e % 2 * 2], s[e % 2 * 2 + 1], T{});
        }
      }
#pragma unroll
      for (int d = 0; d < kValues; ++d) {
        uint32_t b[4];
        ptx::ldmatrix_x4_trans(b, &v[Values::at(16 * j + lane() % 16, 2 * d + lane() / 16)]);
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
          multiply_add<T>(out[t][2 * d], a[t], {b[0], b[1]});
          multiply_add<T>(out[t][2 * d + 1], a[t], {b[2], b[3]});
        }
      }
    }
  }

  // Divides by the sums and writes the rows to `tile`, which holds the queries no longer needed.
  // lse points at the block's row 0, of which `rows` exist; sink: -inf if there is none.
  TC_DEVICE void finish(Chunk* tile, float* lse, int rows, float scale, float sink) {
    __syncwarp();  // other lanes read the queries; without a visible tile no barrier came since
    auto* words = reinterpret_cast<uint32_t*>(tile);
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float total = sum[t][half];
        total += __shfl_xor_sync(kFullWarp, total, 1);
        total += __shfl_xor_sync(kFullWarp, total, 2);
        float inverse = total == 0.f ? 0.f : 1.f / total;  // no visible key: 0, not 0 / 0
        float log_sum = total == 0.f ? -kInfinity : fmaf(top[t][half], scale, logf(total));
        if (C.options >= kRanges && sink != -kInfinity) {
          const Finished with = with_sink(log_sum, sink);
          inverse *= with.factor;
          log_sum = with.lse;
        }
        const int row = first_row() + 16 * t + 8 * half + lane() / 4;
        if (lse && lane() % 4 == 0 && row < rows) lse[row] = log_sum;
#pragma unroll
        for (int c = 0; c < 2 * kValues; ++c)
          words[Values::at(row, c) * 4 + lane() % 4] =
              pack_pair(out[t][c][2 * half] * inverse, out[t][c][2 * half + 1] * inverse, T{});
      }
    }
    __syncwarp();
  }

  TC_DEVICE static void store(const Chunk* tile, T* out, int64_t stride, int rows, int length) {
#pragma unroll 4
    for (int e = lane(); e < 16 * kTiles * Values::kChunks; e += 32) {
      const int row = first_row() + e / Values::kChunks, chunk = e % Values::kChunks;
      if (row < rows && chunk * 8 < length)
        *reinterpret_cast<Chunk*>(out + row * stride + chunk * 8) = tile[Values::at(row, chunk)];
    }
  }
};

struct TensorCore {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    static_assert(sizeof(TensorCoreShared<C>) == tensor_core_shared_bytes(C));
    auto& s = dynamic_shared<TensorCoreShared<C>>();
    const int blocks = query_tiles(p, C.block_m), slices = div_ceil(p.v_dim, dim_of_values(C));
    const int index = int(blockIdx.x) / slices, slice = int(blockIdx.x) % slices * dim_of_values(C);
    const int bh = index / blocks, b = bh / p.heads, h = bh % p.heads;
    // The last queries see the most keys under a causal limit: they start first.
    const QueryTile queries = query_tile<C>(p, b, blocks - 1 - index % blocks);
    const int first = queries.first, rows = queries.rows;
    if (rows == 0) return;
    const T* q = static_cast<const T*>(p.q) + b * p.q_strides.batch + h * p.q_strides.head;
    const T* k = static_cast<const T*>(p.k) + b * p.k_strides.batch +
                 h / p.group * p.k_strides.head + queries.first_key * p.k_strides.row;
    const T* v = static_cast<const T*>(p.v) + b * p.v_strides.batch +
                 h / p.group * p.v_strides.head + queries.first_key * p.v_strides.row + slice;
    const int values = p.v_dim - slice;
    const int end = queries.end(), tiles = div_ceil(end, C.block_n);
    // All rows see all keys of the tiles between these.
    const int open = div_ceil(queries.seen(rows - 1).begin, C.block_n);
    const int closed = queries.seen(0).end / C.block_n;
    const auto copy_tile = [&](int n) {
      copy_rows<T, C.block_n, C.head_dim, C>(s.k[n % 2], k, p.k_strides.row, n * C.block_n, end,
                                             p.head_dim);
      copy_rows<T, C.block_n, dim_of_values(C), C>(s.v[n % 2], v, p.v_strides.row, n * C.block_n,
                                                   end, values);
    };

    copy_rows<T, C.block_m, C.head_dim, C>(s.q, q, p.q_strides.row, first, first + rows,
                                           p.head_dim);
    if (tiles > 0) copy_tile(0);
    ptx::cp_async_wait_all();
    __syncthreads();
    const float scale = C.options >= kSoftcap ? 1.f : p.scale;
    WarpRows<T, C> warp;
    warp.start(s.q);
    for (int n = 0; n < tiles; ++n) {
      if (n + 1 < tiles) copy_tile(n + 1);
      warp.multiply_keys(s.q, s.k[n % 2]);
      if constexpr (C.options >= kSoftcap) warp.make_logits(p, queries, b, h, n * C.block_n);
      if (C.options >= kRanges && n < open) warp.template mask<true>(queries, n * C.block_n);
      if (n >= closed) warp.template mask<false>(queries, n * C.block_n);
      warp.weigh(scale * kLog2E);
      warp.multiply_values(s.v[n % 2]);
      ptx::cp_async_wait_all();
      __syncthreads();  // tile n is used up, tile n + 1 is there
    }

    float* lse = p.lse && slice == 0 ? p.lse + int64_t(bh) * p.seq_q + first : nullptr;
    warp.finish(s.q, lse, rows, scale, sink_of(p, queries.request, h));
    T* out = static_cast<T*>(p.out) + b * p.out_strides.batch + h * p.out_strides.head +
             first * p.out_strides.row + slice;
    WarpRows<T, C>::store(s.q, out, p.out_strides.row, rows, values);
  }
};

}  // namespace tensorcraft::kernel::attention
