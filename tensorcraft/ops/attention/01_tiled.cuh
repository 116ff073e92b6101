// SPDX-License-Identifier: Apache-2.0
#pragma once
// What changed: a block serves block_m queries, so each key and value is read from memory once for
// block_m rows instead of once a row: intensity grows by block_m. Scores of a tile are a small
// matrix product in registers; the maximum and the rescale come once a tile, not once a key.
// Rows are filled up with zeros to a multiple of 32 elements. Demands: dynamic shared memory in
// float32.
#include "tensorcraft/device/base.h"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/logit.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/device/attention/logits.cuh"
#include "tensorcraft/device/attention/request.cuh"
#include "tensorcraft/ops/attention/params.h"

namespace tensorcraft::kernel::attention {

// Rows are padded by four floats: eight threads that read 16 bytes of eight neighbouring rows then
// touch 32 different banks.
template <Config C>
struct TiledShared {
  static constexpr int kPitch = C.head_dim + 4;
  Vec4<float> q[C.block_m * kPitch / 4];
  Vec4<float> k[C.block_n * kPitch / 4];
  Vec4<float> v[C.block_n * kPitch / 4];
  Vec4<float> weights[C.block_m * (C.block_n + 4) / 4];
};

// Rows [first, first + kRows) of a matrix as float, of `length` elements each; rows from `end` on
// become 0, so that nothing past the last key is read and a weight of 0 never meets a NaN, and so
// does what a row lacks.
template <class T, int kRows, Config C>
TC_DEVICE void stage(Vec4<float>* tile, const T* source, int64_t stride, int first, int end,
                     int length) {
  constexpr int kPitch = C.head_dim + 4;
  float* to = reinterpret_cast<float*>(tile);
  for (int e = threadIdx.x; e < kRows * C.head_dim; e += C.threads) {
    const int r = e / C.head_dim, d = e % C.head_dim;
    const bool is_there = first + r < end && d < length;
    to[r * kPitch + d] = is_there ? float(source[(first + r) * stride + d]) : 0.f;
  }
}

TC_DEVICE float dot(Vec4<float> a, Vec4<float> b, float sum) {
  return fmaf(a[0], b[0], fmaf(a[1], b[1], fmaf(a[2], b[2], fmaf(a[3], b[3], sum))));
}

struct Tiled {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    // Eight neighbouring threads share a query row: thread tx owns keys tx, tx + 8, ... of a tile
    // and every eighth four elements of the output; thread ty owns rows ty, ty + kRowStep, ...
    constexpr int kRowStep = C.threads / 8, kRows = C.block_m / kRowStep, kKeys = C.block_n / 8;
    constexpr int kPitch4 = (C.head_dim + 4) / 4, kWeights4 = (C.block_n + 4) / 4;
    constexpr int kDepth4 = C.head_dim / 4, kOut4 = C.head_dim / 32;
    static_assert(C.block_m % kRowStep == 0 && C.block_n % 8 == 0 && C.head_dim % 32 == 0);
    static_assert(sizeof(TiledShared<C>) == tiled_shared_bytes(C));
    auto& s = dynamic_shared<TiledShared<C>>();
    const int tx = threadIdx.x % 8, ty = threadIdx.x / 8;

    const int blocks = query_tiles(p, C.block_m);
    const int bh = int(blockIdx.x / blocks), b = bh / p.heads, h = bh % p.heads;
    const QueryTile tile = query_tile<C>(p, b, int(blockIdx.x % blocks));
    if (tile.rows == 0) return;
    const T* q = static_cast<const T*>(p.q) + b * p.q_strides.batch + h * p.q_strides.head;
    const T* k = static_cast<const T*>(p.k) + b * p.k_strides.batch +
                 h / p.group * p.k_strides.head + tile.first_key * p.k_strides.row;
    const T* v = static_cast<const T*>(p.v) + b * p.v_strides.batch +
                 h / p.group * p.v_strides.head + tile.first_key * p.v_strides.row;
    const int end = tile.end();

    stage<T, C.block_m, C>(s.q, q, p.q_strides.row, tile.first, tile.first + tile.rows, p.head_dim);
    Vec4<float> acc[kRows][kOut4];
    float top[kRows], sum[kRows];
    KeyRange seen[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      top[r] = -kInfinity;
      sum[r] = 0.f;
      seen[r] = tile.seen(ty + r * kRowStep);
#pragma unroll
      for (int c = 0; c < kOut4; ++c) acc[r][c] = Vec4<float>{};
    }

    for (int n = 0; n < end; n += C.block_n) {
      __syncthreads();  // the tile before is used up
      stage<T, C.block_n, C>(s.k, k, p.k_strides.row, n, end, p.head_dim);
      stage<T, C.block_n, C>(s.v, v, p.v_strides.row, n, end, p.v_dim);
      __syncthreads();

      float score[kRows][kKeys] = {};
#pragma unroll 4
      for (int d = 0; d < kDepth4; ++d) {
        Vec4<float> key[kKeys];
#pragma unroll
        for (int j = 0; j < kKeys; ++j) key[j] = s.k[(tx + 8 * j) * kPitch4 + d];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const Vec4<float> query = s.q[(ty + r * kRowStep) * kPitch4 + d];
#pragma unroll
          for (int j = 0; j < kKeys; ++j) score[r][j] = dot(query, key[j], score[r][j]);
        }
      }

#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if constexpr (C.options >= kSoftcap)
          to_logits<T, C, kKeys>(
              p, tile, b, h, ty + r * kRowStep, [&](int j) -> float& { return score[r][j]; },
              [&](int j) { return n + tx + 8 * j; });
        float next = top[r];
#pragma unroll
        for (int j = 0; j < kKeys; ++j) {
          const int key = n + tx + 8 * j;
          const bool visible = key >= seen[r].begin && key < seen[r].end;
          if constexpr (C.options < kSoftcap) score[r][j] *= p.scale;
          if (!visible) score[r][j] = -kInfinity;
          next = fmaxf(next, score[r][j]);
        }
#pragma unroll
        for (int lanes = 4; lanes > 0; lanes /= 2)
          next = fmaxf(next, __shfl_xor_sync(kFullWarp, next, lanes));
        const float shift = next == -kInfinity ? 0.f : next;  // a row with nothing visible yet
        const float keep = expf(top[r] - shift);
        top[r] = next;
        sum[r] *= keep;
#pragma unroll
        for (int c = 0; c < kOut4; ++c)
          for (int e = 0; e < 4; ++e) acc[r][c][e] *= keep;
        float* weights = reinterpret_cast<float*>(s.weights) + (ty + r * kRowStep) * kWeights4 * 4;
#pragma unroll
        for (int j = 0; j < kKeys; ++j) {
          const float weight = expf(score[r][j] - shift);
          sum[r] += weight;
          weights[tx + 8 * j] = weight;
        }
      }
      __syncwarp();  // a row's weights are written and read by one warp

#pragma unroll 2
      for (int j = 0; j < C.block_n; j += 4) {
        Vec4<float> weight[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r)
          weight[r] = s.weights[(ty + r * kRowStep) * kWeights4 + j / 4];
#pragma unroll
        for (int c = 0; c < kOut4; ++c) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const Vec4<float> value = s.v[(j + i) * kPitch4 + tx + 8 * c];
#pragma unroll
            for (int r = 0; r < kRows; ++r)
              for (int e = 0; e < 4; ++e) acc[r][c][e] = fmaf(weight[r][i], value[e], acc[r][c][e]);
          }
        }
      }
    }

#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int i = ty + r * kRowStep;
#pragma unroll
      for (int lanes = 4; lanes > 0; lanes /= 2)
        sum[r] += __shfl_xor_sync(kFullWarp, sum[r], lanes);
      if (i >= tile.rows) continue;
      float inverse = sum[r] == 0.f ? 0.f : 1.f / sum[r];  // no visible key: 0, not 0 / 0
      float lse = sum[r] == 0.f ? -kInfinity : top[r] + logf(sum[r]);
      if (C.options >= kRanges && p.sinks) {
        const Finished with = with_sink(lse, sink_of(p, tile.request, h));
        inverse *= with.factor;
        lse = with.lse;
      }
      T* out = static_cast<T*>(p.out) + b * p.out_strides.batch + h * p.out_strides.head +
               (tile.first + i) * p.out_strides.row;
#pragma unroll
      for (int c = 0; c < kOut4; ++c) {
        const int d = 4 * (tx + 8 * c);
        for (int e = 0; e < 4 && d + e < p.v_dim; ++e) out[d + e] = T(acc[r][c][e] * inverse);
      }
      if (p.lse && tx == 0) p.lse[int64_t(bh) * p.seq_q + tile.first + i] = lse;
    }
  }
};

}  // namespace tensorcraft::kernel::attention
