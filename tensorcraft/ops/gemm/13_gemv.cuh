// SPDX-License-Identifier: Apache-2.0
#pragma once
// Up to 4 tokens: no tile, no shared operand, only a stream of weights into registers.
//
// Each weight serves as many multiply-adds as there are tokens, so tensor cores would wait:
//   time = bytes of the weights / bandwidth, if enough loads are in flight:
//   3 blocks x 256 threads x 8 loads x 16 bytes = 96 KiB a multiprocessor, where 32 are needed.
// Registers are a ring of loads: one is replaced as soon as it was multiplied. Warps divide k, then
// the blocks of a cluster, until the grid fills the device; L2 replaces weights first. Tokens are
// small and come from L1.
//   weights along k: a warp reads 512 bytes of each of 2 or 4 lines; lanes add up by shuffles. If
//   gated, half of a block's lines are of the left half of the weights and half of the right.
//   weights across k: 8 lanes read 128 bytes of a line, 4 groups of lanes run along k.
// It demands a unit stride in the weights; tokens may have any. If 16 bytes do not divide lines and
// addresses of the weights, loads are single elements.
#include "tensorcraft/device/packed.cuh"
#include "tensorcraft/device/reduce.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/gemm/parts/few_rows.cuh"

namespace tensorcraft::kernel::gemm {

// N elements, `step` apart.
template <int N, class T>
TC_DEVICE Packed<T, N> gather(const T* from, int64_t step) {
  AlignedVector<T, N> all;
  for (int i = 0; i < N; ++i) all[i] = from[i * step];
  return bit_cast<Packed<T, N>>(all);
}

// N weights, each read once.
template <int N, class T>
TC_DEVICE Packed<T, N> load_weights(const T* from, uint64_t policy) {
  if constexpr (N == 1)
    return gather<1>(from, 0);
  else
    return Packed<T, N>::load_streamed(from, policy);
}

// The tokens of a batch entry. Past the last it is the last again, whose result is not stored.
template <class T, Config C>
struct GemvTokens {
  static constexpr int count = C.block_m;
  const T* at[count];
  int64_t step;

  TC_DEVICE GemvTokens(const Params& p, uint32_t batch) {
    const Matrix& x = C.swap ? p.b : p.a;
    const int64_t last = (C.swap ? p.n : p.m) - 1;
    const int64_t next = C.swap ? x.col_stride : x.row_stride;
    step = C.swap ? x.row_stride : x.col_stride;
    at[0] = batch_entry<const T>(p, x, batch);
    for (int t = 1; t < count; ++t) at[t] = at[0] + (t < last ? t : last) * next;
  }
  // Elements k to k + N of each.
  template <int N>
  TC_DEVICE void load(Packed<T, N> (&to)[count], int64_t k) const {
#pragma unroll
    for (int t = 0; t < count; ++t) {
      if constexpr (C.a_layout == Layout::row_major && C.a_vector >= N)
        to[t] = Packed<T, N>::load(at[t] + k);
      else
        to[t] = gather<N>(at[t] + k * step, step);
    }
  }
};

// A Config says it of the weights as B, with `swap` as the transpose of A: a tile has block_m
// tokens and block_n outputs. The warps that do not divide outputs divide k.
template <Config C>
inline constexpr int kWarpsAlongK = C.threads / 32 * C.warp_n / C.block_n;
template <Config C>
using GemvSums = SplitSums<C, kWarpsAlongK<C>>;

// The scales by block of some rows of A, or columns of B.
template <int N>
struct BlockScalesOf {
  const float* first[N];
  int64_t step;

  TC_DEVICE float at(int i, int64_t block) const { return first[i][block * step]; }
  TC_DEVICE void set(const Params& p, bool is_b, int i, int64_t line) {
    first[i] = is_b ? p.b_scale + line / p.scale_columns * p.b_scale_stride
                    : p.a_scale + line * p.a_scale_stride;
    step = is_b ? p.b_scale_step : p.a_scale_step;
  }
};

// Calls use(s, k) for each k below `end`, `distance` apart, when load(s, k) has been called and,
// meanwhile, for the kStages - 1 steps that follow. Returns the first k that is left.
template <int kStages, class Load, class Use>
TC_DEVICE int64_t stream(int64_t k, int64_t end, int64_t distance, const Load& load,
                         const Use& use) {
#pragma unroll
  for (int s = 0; s < kStages; ++s) {
    if (k + s * distance < end) load(s, k + s * distance);
  }
#pragma unroll 1
  for (;;) {
#pragma unroll
    for (int s = 0; s < kStages; ++s, k += distance) {
      if (k >= end) return k;
      use(s, k);
      if (k + kStages * distance < end) load(s, k + kStages * distance);
    }
  }
}

// Lines of weights that run along k, a few for each warp.
template <class T, Config C>
struct GemvAlongK {
  static constexpr int tokens = C.block_m, lines = C.warp_n;
  static constexpr int vector = C.b_vector, step = 32 * vector;
  static_assert(C.threads / 32 * lines == C.block_n * kWarpsAlongK<C>);

  static constexpr bool by_block = is_by_block(C.promotion);

  using Sums = float[lines][tokens];
  Sums sums = {};

  TC_DEVICE static void add(Sums& to, const Packed<T, vector> (&w)[lines],
                            const Packed<T, vector> (&x)[tokens]) {
#pragma unroll
    for (int e = 0; e < vector; ++e) {
#pragma unroll
      for (int t = 0; t < tokens; ++t) {
        const float value = x[t][e];
#pragma unroll
        for (int i = 0; i < lines; ++i) to[i][t] += w[i][e] * value;
      }
    }
  }
  // Adds products times the scales of lines and tokens in a block along k.
  TC_DEVICE void add_block(const Packed<T, vector> (&w)[lines],
                           const Packed<T, vector> (&x)[tokens],
                           const BlockScalesOf<lines>& of_lines,
                           const BlockScalesOf<tokens>& of_tokens, int64_t block) {
    Sums part = {};
    add(part, w, x);
#pragma unroll
    for (int t = 0; t < tokens; ++t) {
      const float of_token = of_tokens.at(t, block);
#pragma unroll
      for (int i = 0; i < lines; ++i) sums[i][t] += part[i][t] * of_lines.at(i, block) * of_token;
    }
  }

  TC_DEVICE void run(const Params& p, const FewRowsTile& tile, GemvSums<C>& shared) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int part = warp % kWarpsAlongK<C>, first = warp / kWarpsAlongK<C> * lines;
    const uint64_t policy = ptx::createpolicy_evict_first();
    const GemvTokens<T, C> x(p, tile.batch);
    const Matrix& weights = C.swap ? p.a : p.b;
    const int64_t last = (C.swap ? p.m : p.n) - 1;
    const int64_t next = C.swap ? weights.row_stride : weights.col_stride;
    const T* entry = batch_entry<const T>(p, weights, tile.batch);
    const T* from[lines];
    BlockScalesOf<lines> of_lines;
    BlockScalesOf<tokens> of_tokens;
    for (int i = 0; i < lines; ++i) {
      const bool is_right = C.gated && first + i >= tile_columns(C);
      const int64_t in_half = tile.output + first + i - (is_right ? tile_columns(C) : 0);
      const int64_t line = (in_half < last ? in_half : last) + (is_right ? p.n : 0);
      from[i] = entry + line * next;
      if constexpr (by_block) of_lines.set(p, !C.swap, i, line);
    }
    if constexpr (by_block) {
      const int64_t last_token = (C.swap ? p.n : p.m) - 1;
      for (int t = 0; t < tokens; ++t) of_tokens.set(p, C.swap, t, t < last_token ? t : last_token);
    }
    Packed<T, vector> w[C.stages][lines];
    const auto load = [&](int stage, int64_t k) {
#pragma unroll
      for (int i = 0; i < lines; ++i)
        w[stage][i] = load_weights<vector>(from[i] + k + lane * vector, policy);
    };
    const auto use = [&](int stage, int64_t k) {
      Packed<T, vector> tokens_at_k[tokens];
      x.load(tokens_at_k, k + lane * vector);
      if constexpr (by_block)
        add_block(w[stage], tokens_at_k, of_lines, of_tokens, (k + lane * vector) / kScaleBlock);
      else
        add(sums, w[stage], tokens_at_k);
    };
    // Whole steps, then what is left for some lanes of one warp.
    constexpr int64_t distance = int64_t(step) * kWarpsAlongK<C> * C.split;
    const int64_t start = int64_t(tile.rank * kWarpsAlongK<C> + part) * step;
    const int64_t k = stream<C.stages>(start, p.k - (step - 1), distance, load, use);
    if (k + lane * vector < p.k) {
      load(0, k);
      use(0, k);
    }
#pragma unroll
    for (int i = 0; i < lines; ++i) {
#pragma unroll
      for (int t = 0; t < tokens; ++t) {
        const float sum = warp_sum(sums[i][t]);
        if (lane == 0) shared.sum(part, t, first + i) = sum;
      }
    }
  }
};

// Lines of weights that run across k: a thread owns neighbouring outputs and a run of k.
template <class T, Config C>
struct GemvAcrossK {
  static constexpr int tokens = C.block_m, vector = C.b_vector;
  static constexpr int lanes = C.block_n / vector;  // along a line
  static constexpr int count = kVectorSize<T>;      // elements of k in a run
  static constexpr int step = 32 / lanes * count;
  static_assert(C.threads / 32 == kWarpsAlongK<C> && 32 % lanes == 0 && !C.gated);

  float sums[tokens][vector] = {};

  TC_DEVICE void add(const Packed<T, vector>& w, int t, float x) {
#pragma unroll
    for (int e = 0; e < vector; ++e) sums[t][e] += w[e] * x;
  }

  TC_DEVICE void run(const Params& p, const FewRowsTile& tile, GemvSums<C>& shared) {
    const int part = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int own = lane % lanes * vector;  // of the block's outputs
    const uint64_t policy = ptx::createpolicy_evict_first();
    const GemvTokens<T, C> x(p, tile.batch);
    const Matrix& weights = C.swap ? p.a : p.b;
    const int64_t last = (C.swap ? p.m : p.n) - vector;
    const int64_t next = C.swap ? weights.col_stride : weights.row_stride;
    const int64_t output = tile.output + own;
    const T* from = batch_entry<const T>(p, weights, tile.batch) + (output < last ? output : last);

    const int own_k = lane / lanes * count;  // of a step
    Packed<T, vector> w[C.stages][count];
    const auto load = [&](int stage, int64_t k) {
#pragma unroll
      for (int i = 0; i < count; ++i)
        w[stage][i] = load_weights<vector>(from + (k + own_k + i) * next, policy);
    };
    const auto use = [&](int stage, int64_t k) {
      Packed<T, count> tokens_at_k[tokens];
      x.load(tokens_at_k, k + own_k);
#pragma unroll
      for (int i = 0; i < count; ++i) {
#pragma unroll
        for (int t = 0; t < tokens; ++t) add(w[stage][i], t, tokens_at_k[t][i]);
      }
    };
    // Whole steps, then what is left for some lanes of one warp.
    constexpr int64_t distance = int64_t(step) * kWarpsAlongK<C> * C.split;
    const int64_t start = int64_t(tile.rank * kWarpsAlongK<C> + part) * step;
    const int64_t k = stream<C.stages>(start, p.k - (step - 1), distance, load, use) + own_k;
#pragma unroll 1
    for (int64_t i = k; i < p.k && i < k + count; ++i) {
      const auto rest = load_weights<vector>(from + i * next, policy);
#pragma unroll
      for (int t = 0; t < tokens; ++t) add(rest, t, float(x.at[t][i * x.step]));
    }
#pragma unroll
    for (int t = 0; t < tokens; ++t) {
#pragma unroll
      for (int e = 0; e < vector; ++e) {
        float sum = sums[t][e];
#pragma unroll
        for (int other = lanes; other < 32; other *= 2)
          sum += __shfl_xor_sync(kFullWarp, sum, other);
        if (lane < lanes) shared.sum(part, t, own + e) = sum;
      }
    }
  }
};

struct Gemv {
  template <class T, class Out, Config C>
  TC_DEVICE static void run(const ParamsOf<C>& p) {
    auto& shared = static_shared<GemvSums<C>>();
    const FewRowsTile tile = few_rows_tile<C>(p);
    Select<C.b_layout == Layout::column_major, GemvAlongK<T, C>, GemvAcrossK<T, C>>().run(p, tile,
                                                                                          shared);
    shared.store(Epilogue<T, Out, C>(p, tile.batch), C.swap ? tile.output : 0,
                 C.swap ? 0 : tile.output);
  }
};

}  // namespace tensorcraft::kernel::gemm
