// SPDX-License-Identifier: Apache-2.0
#pragma once
// A window of known size slides down: a thread has a strip of the result, several columns wide, and
// reads each row of x that the strip sees once. A row adds to all rows of the result whose windows
// have it: there are taps / stride of them under way, whose sums are in registers, and so are the
// weights. For o columns and s taps an output costs s s products and (o + s - 1) / o loads and
// conversions, where `depthwise` has s times as many, and reads every weight from shared memory.
//
// Loads are asked for `stages` rows before they are needed, so that memory is never idle. Sums and
// rows go round in registers: the loop is unrolled until all of them are where they began.
//
// It demands what depthwise does, and a square window of 3 or 5 taps without dilation.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/ops/conv2d/finish.cuh"

namespace tensorcraft::kernel::conv2d {

// The weights of a block's channels, tap by tap; each row begins in banks of its own.
template <class T, Config C>
struct SlidingWeights {
  static constexpr int channels = kSlidingBytes / int(sizeof(T));
  alignas(16) float at[C.taps * C.taps][channels + 4];

  TC_DEVICE void stage(const Params& p, int first_channel) {
    constexpr int taps = C.taps * C.taps;
#pragma unroll
    for (int i = int(threadIdx.x); i < taps * channels; i += C.threads) {
      const int tap = i % taps, c = i / taps, channel = first_channel + c;
      const int offset = channel * int(p.w_at.filter) + tap / C.taps * int(p.w_at.row) +
                         tap % C.taps * int(p.w_at.column);
      at[tap][c] = channel < int(p.groups) ? float(static_cast<const T*>(p.w)[offset]) : 0.0f;
    }
  }
};

// Where a strip begins, and how many rows it has.
struct Strip {
  int64_t sample = 0;
  int row = 0, column = 0, rows = 0;

  // One that does not exist has no rows: its thread helps to stage weights.
  TC_DEVICE Strip(const Params& p, bool exists, uint32_t index, int outputs) {
    if (!exists) return;
    const uint32_t above = p.by_pieces.quotient(index), image = p.by_segments.quotient(above);
    sample = image;
    column = int(index - above * p.by_pieces.divisor) * outputs;
    row = int(above - image * p.by_segments.divisor) * p.strip_rows;
    const int below = int(p.rows.out) - row;
    rows = below < p.strip_rows ? below : p.strip_rows;
  }
  // An image has fewer than 2^31 elements, the gaps between them included.
  TC_DEVICE int64_t offset(const ImageStrides& at, int y, int x, int channel) const {
    return sample * at.sample + (y * int(at.row) + x * int(at.column) + channel);
  }
};

// n, but at least 0 and at most `most`.
TC_DEVICE int within(int n, int most) { return n < 0 ? 0 : n < most ? n : most; }
// A word whose first n bits are 1, of `most`.
TC_DEVICE int first_bits(int n, int most) { return (1 << within(n, most)) - 1; }

template <class T, Config C>
struct SlidingThread {
  using Values = Packed<T, C.vector>;
  static constexpr int span = (C.outputs - 1) * C.stride + C.taps;  // columns of x
  static constexpr int ring = (C.taps + C.stride - 1) / C.stride;   // rows of sums
  static constexpr int period = ring * C.stride;                    // until sums are back
  static constexpr int unrolled = period % C.stages == 0 ? period : period * C.stages;

  // Rows of sums that are finished in front of the strip's first row.
  static constexpr int unwanted = (C.taps - 1) / C.stride;

  const Params& p;
  Values rows[C.stages][span];          // of x, on their way
  const T *x, *residual;                // the next row to ask for, that of the next row of sums
  T* out;                               // where the next finished row of sums goes
  int columns_in = 0, columns_out = 0;  // bits: are they in the image?
  int seen, begin, end;  // rows of x that the strip sees; those from begin to end are in the image
  float weights[C.taps * C.taps][C.vector];
  float bias[C.vector];
  bool is_infinite;  // is one of the weights?
  float sums[ring][C.outputs][C.vector] = {};

  TC_DEVICE SlidingThread(const Params& params, const Strip& strip, int channel) : p(params) {
    const int row = strip.row * C.stride - int(p.rows.before);
    const int column = strip.column * C.stride - int(p.columns.before);
    const int before = strip.row - unwanted;
    x = static_cast<const T*>(p.x) + strip.offset(p.x_at, row, column, channel);
    out = static_cast<T*>(p.out) + strip.offset(p.out_at, before, strip.column, channel);
    residual = static_cast<const T*>(p.residual);
    if (residual) residual += strip.offset(p.residual_at, before, strip.column, channel);
    columns_in = first_bits(int(p.columns.in) - column, span) & ~first_bits(-column, span);
    columns_out = first_bits(int(p.columns.out) - strip.column, C.outputs);
    seen = strip.rows > 0 ? (strip.rows - 1) * C.stride + C.taps : 0;
    begin = within(-row, seen);
    end = within(int(p.rows.in) - row, seen);
  }

  TC_DEVICE void ask_for_first() {
#pragma unroll
    for (int row = 0; row < C.stages; ++row) ask_for(rows[row], row);
  }

  TC_DEVICE void take_weights(const SlidingWeights<T, C>& staged, int lane_channel, int channel) {
    float check = 0;
#pragma unroll
    for (int tap = 0; tap < C.taps * C.taps; ++tap)
#pragma unroll
      for (int i = 0; i < C.vector; ++i) {
        weights[tap][i] = staged.at[tap][lane_channel + i];
        check += 0.0f * weights[tap][i];
      }
    is_infinite = !(check == 0);
    const T* from = static_cast<const T*>(p.bias);
#pragma unroll
    for (int i = 0; i < C.vector; ++i)
      bias[i] = from ? float(from[(channel + i) * p.bias_stride]) : -0.0f;  // changes no sum
  }

  TC_DEVICE void slide() {
    for (int row = 0; row < seen; row += unrolled) {
#pragma unroll
      for (int turn = 0; turn < unrolled; ++turn)
        if (row + turn < seen) step(row + turn, turn);
    }
  }

 private:
  TC_DEVICE bool has_row(int row) const { return row >= begin && row < end; }

  TC_DEVICE void ask_for(Values (&to)[span], int row) {
    const int wanted = has_row(row) ? columns_in : 0;
    const T* from = x;
#pragma unroll
    for (int i = 0; i < span; ++i, from += p.x_at.column)
      to[i] = wanted & 1 << i ? Values::load(from) : Values{};
    x += p.x_at.row;
  }

  // Which row of its window the sums in a slot need at that turn; from C.taps on: none.
  TC_DEVICE static constexpr int window_row(int turn, int slot) {
    return (turn % period + period - slot * C.stride) % period;
  }

  // What a row of x adds to row r of the windows of one row of sums.
  TC_DEVICE void add_row(float (&to)[C.outputs][C.vector], const float (&from)[span][C.vector],
                         int r) {
#pragma unroll
    for (int s = 0; s < C.taps; ++s)
#pragma unroll
      for (int output = 0; output < C.outputs; ++output)
#pragma unroll
        for (int i = 0; i < C.vector; ++i)
          to[output][i] += from[output * C.stride + s][i] * weights[r * C.taps + s][i];
  }

  TC_DEVICE void store(float (&finished)[C.outputs][C.vector], int row) {
    const int wanted = row >= C.taps - 1 ? columns_out : 0;
#pragma unroll
    for (int output = 0; output < C.outputs; ++output)
#pragma unroll
      for (int i = 0; i < C.vector; ++i) finished[output][i] += bias[i];
    if (p.residual) {
      const T* from = residual;
#pragma unroll
      for (int output = 0; output < C.outputs; ++output, from += p.residual_at.column)
        if (wanted & 1 << output) add_residual<T, C.vector>(finished[output], from);
      residual += p.residual_at.row;
    }
    T* to = out;
#pragma unroll
    for (int output = 0; output < C.outputs; ++output, to += p.out_at.column)
      if (wanted & 1 << output) store_activated<T, C, C.vector>(finished[output], to);
    out += p.out_at.row;
  }

  // Row `row` of x, which is `turn` in the round of the loop.
  TC_DEVICE void step(int row, int turn) {
    Values(&arrived)[span] = rows[turn % C.stages];
    float from[span][C.vector];
#pragma unroll
    for (int i = 0; i < span; ++i) to_floats(from[i], arrived[i]);
    ask_for(arrived, row + C.stages);
    // Rows outside are zeros, which add nothing but for weights that are not finite.
    if (has_row(row) || is_infinite) {
#pragma unroll
      for (int slot = 0; slot < ring; ++slot)
        if (window_row(turn, slot) < C.taps) add_row(sums[slot], from, window_row(turn, slot));
    }
#pragma unroll
    for (int slot = 0; slot < ring; ++slot) {
      if (window_row(turn, slot) != C.taps - 1) continue;
      store(sums[slot], row);
#pragma unroll
      for (int output = 0; output < C.outputs; ++output)
#pragma unroll
        for (int i = 0; i < C.vector; ++i) sums[slot][output][i] = 0;
    }
  }
};

struct Sliding {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int channels = SlidingWeights<T, C>::channels, lanes = channels / C.vector;
    auto& weights = static_shared<SlidingWeights<T, C>>();
    const uint32_t parts = (uint32_t(p.groups) + channels - 1) / channels;
    const int first_channel = int(blockIdx.x % parts) * channels;
    const int lane_channel = int(threadIdx.x) % lanes * C.vector;
    const int channel = first_channel + lane_channel;
    const uint32_t index = blockIdx.x / parts * (C.threads / lanes) + threadIdx.x / lanes;
    const bool exists = index < p.strips && channel < int(p.groups);
    SlidingThread<T, C> thread(p, Strip(p, exists, index, C.outputs), channel);
    thread.ask_for_first();
    weights.stage(p, first_channel);
    __syncthreads();
    if (!exists) return;
    thread.take_weights(weights, lane_channel, channel);
    thread.slide();
  }
};

}  // namespace tensorcraft::kernel::conv2d
