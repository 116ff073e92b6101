// SPDX-License-Identifier: Apache-2.0
#pragma once
// The values between both convolutions never leave the multiprocessor: of N places, C channels and
// K filters two calls move N (C + C + C + K) elements, this one N (C + K). A block filters all
// channels of its places into shared memory, rounded to the dtype, and then multiplies them by all
// weights of the product, which cp.async streams through a ring of stages, by mma.sync.
//
// A thread filters a piece of a row, four places of 8 channels: an input of a row is read once for
// all of them, and a weight, too. The pieces of a block are counted down a few rows first, so that
// they see an almost square part of the image.
//
// The price: shared memory for all channels of the places, and channels filtered again for each
// part where the filters of a place are spread over several blocks. It demands sm_80, 16-bit
// elements, channels of x side by side in whole units of 16 bytes, and so the product's weights.
#include "tensorcraft/device/copy_ring.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/device/tile/block_tile.cuh"
#include "tensorcraft/device/tile/slab.cuh"
#include "tensorcraft/device/tile/swizzled_tile.cuh"
#include "tensorcraft/device/tile/tile_copier.cuh"
#include "tensorcraft/ops/depthwise_separable_conv2d/finish.cuh"

namespace tensorcraft::kernel::depthwise_separable_conv2d {

// Weights of windows as floats, tap by tap; each row begins in banks of its own.
template <Config C>
struct PassWeights {
  static constexpr int taps = C.taps ? C.taps * C.taps : kFusedMaxTaps;
  alignas(16) float at[taps][pass_channels(C) + 4];

  // Takes the weights of a thread's channels.
  TC_DEVICE void take(float (&to)[kFusedVector], int tap, int lane) const {
#pragma unroll
    for (int i = 0; i < kFusedVector; i += 4) {
      const auto four = load_vector<4>(&at[tap][lane + i]);
#pragma unroll
      for (int e = 0; e < 4; ++e) to[i + e] = four[e];
    }
  }
};

// Channels of all places of a block, and filters by the same channels: lines along the channels.
template <class T, Config C>
using FilteredPanel = SwizzledTile<T, C.block_m, C.block_k>;
template <class T, Config C>
using FilterTile = SwizzledTile<T, C.block_n, C.block_k>;

template <class T, Config C>
struct alignas(128) FusedShared {
  union {
    PassWeights<C> weights[2];
    Slab<C.warp_n> slabs[C.threads / 32];
  };
  FilterTile<T, C> stages[C.stages];
  int64_t out[C.block_m], residual[C.block_m];  // where the places are; out -1: nowhere
};

// The operands of one step.
template <class T, Config C>
struct FusedStep {
  using Element = T;
  static constexpr bool a_along_k = true, b_along_k = true;
  const FilteredPanel<T, C>& a;
  const FilterTile<T, C>& b;
};

// A piece of a row of the result.
struct Piece {
  static constexpr int kMostColumns = 11;  // a window of 5 taps and stride 2 over four places
  int64_t sample;
  int row, column;
  int first_column;         // of x that it sees
  uint32_t columns_in = 0;  // bits: the columns from there on that are in the image
  bool exists;

  TC_DEVICE Piece(const Params& p, uint32_t index) {
    const uint32_t across = p.by_rows.quotient(index);
    const uint32_t band = p.by_pieces.quotient(across), image = p.by_bands.quotient(band);
    sample = image;
    row = int((band - image * p.by_bands.divisor) * p.by_rows.divisor +
              (index - across * p.by_rows.divisor));
    column = int(across - band * p.by_pieces.divisor) * kPiece;
    first_column = int(p.columns.first(column));
    exists = index < p.pieces && row < int(p.rows.out);
    if (!exists) return;
#pragma unroll
    for (int i = 0; i < kMostColumns; ++i)
      if (uint32_t(first_column + i) < uint32_t(p.columns.in)) columns_in |= 1u << i;
  }
};

template <class T, Config C>
struct FusedFilter {
  using Values = Packed<T, kFusedVector>;
  // Inputs of a row that a piece reads, if the window is known.
  static constexpr int span = C.taps ? (kPiece - 1) * C.stride + C.taps : 1;

  const Params& p;
  const Piece& at;
  const T* x;  // of the sample and the thread's channels
  float sums[kPiece][kFusedVector] = {};

  // Outside the image: zeros, which make a NaN of a weight that is not finite.
  TC_DEVICE static Values load(const T* from, bool inside) {
    return inside ? Values::load(from) : Values{};
  }
  TC_DEVICE void add(int output, const float (&from)[kFusedVector],
                     const float (&by)[kFusedVector]) {
#pragma unroll
    for (int i = 0; i < kFusedVector; ++i) sums[output][i] += from[i] * by[i];
  }

  // `wanted`: bits, is a column in the image?
  TC_DEVICE void add_known_row(const T* from, uint32_t wanted, const PassWeights<C>& weights, int r,
                               int lane) {
    Values values[span];
#pragma unroll
    for (int i = 0; i < span; ++i, from += p.x_at.column)
      values[i] = load(from, (wanted >> i & 1) != 0);
    float by[C.taps ? C.taps : 1][kFusedVector];
#pragma unroll
    for (int s = 0; s < C.taps; ++s) weights.take(by[s], r * C.taps + s, lane);
#pragma unroll
    for (int i = 0; i < span; ++i) {
      float inputs[kFusedVector];
      to_floats(inputs, values[i]);
#pragma unroll
      for (int output = 0; output < kPiece; ++output) {
        const int s = i - output * C.stride;
        if (s >= 0 && s < C.taps) add(output, inputs, by[s]);
      }
    }
  }

  TC_DEVICE void add_any_row(int y, const PassWeights<C>& weights, int r, int lane) {
    const int taps = int(p.columns.taps);
    const bool has_row = at.exists && p.rows.has(y);
    for (int s = 0; s < taps; ++s) {
      float by[kFusedVector];
      weights.take(by, r * taps + s, lane);
#pragma unroll
      for (int output = 0; output < kPiece; ++output) {
        const int column = int(p.columns.at(at.column + output, s));
        float inputs[kFusedVector];
        to_floats(inputs, load(x + y * p.x_at.row + column * p.x_at.column,
                               has_row && p.columns.has(column)));
        add(output, inputs, by);
      }
    }
  }

  // `lane`: the thread's first channel among those of the pass.
  TC_DEVICE void run(const PassWeights<C>& weights, int lane) {
    if constexpr (C.taps != 0) {
      int y = int(p.rows.first(at.row));
      const T* from = x + y * p.x_at.row + at.first_column * p.x_at.column;
#pragma unroll 1
      for (int r = 0; r < C.taps; ++r, ++y, from += p.x_at.row)
        add_known_row(from, p.rows.has(y) ? at.columns_in : 0, weights, r, lane);
    } else {
      for (int r = 0; r < int(p.rows.taps); ++r)
        add_any_row(int(p.rows.at(at.row, r)), weights, r, lane);
    }
  }
};

// Stages the weights of the channels from `first` on.
template <class T, Config C>
TC_DEVICE void stage_weights(const Params& p, PassWeights<C>& weights, int first) {
  constexpr int channels = pass_channels(C);
  const int columns = C.taps ? C.taps : int(p.columns.taps);
  const int taps = C.taps ? C.taps * C.taps : int(p.rows.taps * p.columns.taps);
#pragma unroll 4
  for (int i = int(threadIdx.x); i < taps * channels; i += C.threads) {
    const int tap = i % taps, c = i / taps, channel = first + c;
    const int64_t offset = channel * p.depthwise_at.channel + tap / columns * p.depthwise_at.row +
                           tap % columns * p.depthwise_at.column;
    weights.at[tap][c] = channel < int(p.channels) ? element<T>(p.depthwise, offset) : 0.0f;
  }
}

// Filters all channels of a block's places into the panels.
template <class T, Config C>
TC_DEVICE void filter_places(const Params& p, FusedShared<T, C>& shared,
                             FilteredPanel<T, C>* panels, int num_panels, uint32_t first_piece) {
  constexpr int channels = pass_channels(C), lanes = channels / kFusedVector;
  static_assert(C.block_m / kPiece * lanes == C.threads, "a thread filters a piece");
  const int piece = int(threadIdx.x) / lanes, lane = int(threadIdx.x) % lanes * kFusedVector;
  const Piece at(p, first_piece + uint32_t(piece));
  const T* x = static_cast<const T*>(p.x) + at.sample * p.x_at.sample;
  const int padded = num_panels * C.block_k;
  stage_weights<T, C>(p, shared.weights[0], 0);
  __syncthreads();
  for (int first = 0, turn = 0; first < padded; first += channels, turn ^= 1) {
    if (first + channels < padded)
      stage_weights<T, C>(p, shared.weights[turn ^ 1], first + channels);
    const int channel = first + lane;
    const bool has_channels = channel < int(p.channels);
    if (channel < padded) {
      FusedFilter<T, C> filter{p, at, x + channel};
      if (has_channels) filter.run(shared.weights[turn], lane);
      auto& panel = panels[channel / C.block_k];
#pragma unroll
      for (int output = 0; output < kPiece; ++output) {
        float(&sums)[kFusedVector] = filter.sums[output];
#pragma unroll
        for (int i = 0; i < kFusedVector; ++i) {
          if (has_channels && p.depthwise_bias)
            sums[i] += element<T>(p.depthwise_bias, (channel + i) * p.depthwise_bias_stride);
          sums[i] = has_channels ? activate<C.depthwise_activation, T>(sums[i]) : 0.0f;
        }
        panel.at[panel.place(piece * kPiece + output, channel % C.block_k / kFusedVector)] =
            bit_cast<Vec4<uint32_t>>(from_floats<T, kFusedVector>(sums));
      }
    }
    __syncthreads();  // the next weights are there, and nobody reads these
  }
}

// Stores four filters of a place.
template <class T, Config C>
struct FusedEpilogue {
  const Params& p;
  const FusedShared<T, C>& shared;

  TC_DEVICE void store(const float (&sums)[4], int64_t row, int64_t filter) const {
    const int64_t out = shared.out[row], residual = shared.residual[row];
    if (out < 0 || filter >= p.filters) return;
    const auto activated = [](float x) { return activate<C.activation, T>(x); };
    if constexpr (C.vector == 4) {
      finish<T>(p, sums, residual + filter, out + filter, activated);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float one[1] = {sums[i]};
        if (filter + i < p.filters)
          finish<T>(p, one, residual + (filter + i) * p.residual_at.channel,
                    out + (filter + i) * p.out_at.channel, activated);
      }
    }
  }
};

// The biases of a warp's filters, where its sums begin.
template <class T, Config C>
TC_DEVICE WarpSums<C.warp_m, C.warp_n> biased_sums(const Params& p, int64_t filter) {
  WarpSums<C.warp_m, C.warp_n> sums = {};
  if (!p.bias) return sums;
#pragma unroll
  for (int j = 0; j < C.warp_n / 8; ++j) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int64_t at = filter + j * 8 + threadIdx.x % 4 * 2 + e;
      const float bias = at < p.filters ? element<T>(p.bias, at * p.bias_stride) : 0.0f;
#pragma unroll
      for (int i = 0; i < C.warp_m / 16; ++i) sums.at[i][j][e] = sums.at[i][j][e + 2] = bias;
    }
  }
  return sums;
}

// Which filters and channels a step of a block has: tiles of filters, `parts` tiles apart.
template <Config C>
struct FusedStepOf {
  int64_t filter;
  int panel = 0;

  TC_DEVICE void next(const Params& p, int num_panels) {
    if (++panel < num_panels) return;
    panel = 0;
    filter += int64_t(p.parts) * C.block_n;
  }
};

struct Fused {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int steps = C.block_k / kMmaDepth<T>, warps_n = C.block_n / C.warp_n;
    static_assert(steps % 2 == 0, "an even number of steps alternates fragments");
    static_assert(C.threads == C.block_m / C.warp_m * warps_n * 32, "the warps cover the tile");
    static_assert(sizeof(FusedShared<T, C>) == fused_fixed_bytes(C), "as the host asked for");
    auto& shared = dynamic_shared<FusedShared<T, C>>();
    auto* const panels = reinterpret_cast<FilteredPanel<T, C>*>(&shared + 1);
    const int num_panels = int(div_ceil(p.channels, int64_t(C.block_k)));
    const uint32_t tile = p.by_parts.quotient(blockIdx.x), part = blockIdx.x - tile * p.parts;
    const uint32_t first_piece = tile * (C.block_m / kPiece);
    const int64_t first_filter = int64_t(part) * C.block_n;

    FusedStepOf<C> to_copy{first_filter};
    CopyRing<C.stages> ring;
    const auto copy = [&](int stage) {
      if (to_copy.filter >= p.filters) return;
      const int64_t channel = int64_t(to_copy.panel) * C.block_k;
      const T* from =
          static_cast<const T*>(p.pointwise) + to_copy.filter * p.pointwise_at.filter + channel;
      TileCopier<T, FilterTile<T, C>, C.threads, true>(from, p.pointwise_at.filter)
          .copy(shared.stages[stage], min_of(p.filters - to_copy.filter, C.block_n),
                min_of(p.channels - channel, C.block_k));
      to_copy.next(p, num_panels);
    };
#pragma unroll
    for (int i = 0; i < C.stages - 1; ++i) ring.fill(copy);

    for (int row = int(threadIdx.x); row < C.block_m; row += C.threads) {
      const Piece at(p, first_piece + uint32_t(row / kPiece));
      const int column = at.column + row % kPiece;
      const bool exists = at.exists && column < int(p.columns.out);
      shared.out[row] = exists ? p.out_at.offset(at.sample, at.row, column, 0) : -1;
      shared.residual[row] = p.residual_at.offset(at.sample, at.row, column, 0);
    }
    filter_places<T, C>(p, shared, panels, num_panels, first_piece);

    const int warp = int(threadIdx.x) / 32;
    const int row = warp / warps_n * C.warp_m, col = warp % warps_n * C.warp_n;
    FusedStepOf<C> now{first_filter};
    Fragments<C.warp_m, C.warp_n> fragments[2];
    const auto load = [&](const FusedStepOf<C>& of, int stage, int step) {
      fragments[step % 2].load(FusedStep<T, C>{panels[of.panel], shared.stages[stage]}, row, col,
                               step * kMmaDepth<T>);
    };
    auto sums = biased_sums<T, C>(p, now.filter + col);
    int stage = ring.next();
    load(now, stage, 0);
    while (now.filter < p.filters) {
      FusedStepOf<C> following = now;
      following.next(p, num_panels);
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        if (step == 0) ring.fill(copy);
        if (step + 1 < steps) {
          load(now, stage, step + 1);
        } else {
          stage = ring.next();
          if (following.filter < p.filters) load(following, stage, 0);
        }
        sums.template add_product<T>(fragments[step % 2]);
      }
      if (following.panel == 0) {
        store_sums(FusedEpilogue<T, C>{p, shared}, shared.slabs[warp], sums, row, now.filter + col);
        if (following.filter < p.filters) sums = biased_sums<T, C>(p, following.filter + col);
      }
      now = following;
    }
    ring.finish();
  }
};

}  // namespace tensorcraft::kernel::depthwise_separable_conv2d
