// SPDX-License-Identifier: Apache-2.0
#pragma once
// A window of known size slides down: a thread has a strip of the result, several columns wide, and
// reads each row of x that the strip sees once. A row adds to all rows of the result whose windows
// have it: there are taps / stride of them under way, whose sums are in registers, and so are the
// weights. For o columns and s taps an output costs s s products and (o + s - 1) / o loads and
// conversions, where `depthwise` has s times as many, and reads every weight from shared memory.
//
// `stages` rows are on their way to shared memory by cp.async, each thread's to places of its own,
// so no barrier is needed and no register waits. Sums go round in registers: the loop is unrolled
// until they are where they began.
//
// It demands sm_80, and what depthwise does, and a square window of 3 or 5 taps without dilation.
#include "tensorcraft/device/ptx/cp_async.cuh"
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

// Rows of x on their way to the threads of a block: each has a column of every row to itself.
template <class T, Config C>
struct SlidingRows {
  static constexpr int span = (C.outputs - 1) * C.stride + C.taps;  // columns of x
  Packed<T, C.vector> of[C.stages][span][C.threads];
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
  static constexpr int span = SlidingRows<T, C>::span;
  static constexpr int ring = (C.taps + C.stride - 1) / C.stride;  // rows of sums
  static constexpr int period = ring * C.stride;                   // until sums are back

  // Rows of sums that are finished in front of the strip's first row.
  static constexpr int unwanted = (C.taps - 1) / C.stride;

  const Params& p;
  SlidingRows<T, C>& rows;              // on their way
  int slot = 0;                         // of the oldest of them
  const T *x, *residual;                // the next row to ask for, that of the next row of sums
  T* out;                               // where the next finished row of sums goes
  int columns_in = 0, columns_out = 0;  // bits: are they in the image?
  int seen, begin, end;  // rows of x that the strip sees; those from begin to end are in the image
  float weights[C.taps * C.taps][C.vector];
  float bias[C.vector];
  float sums[ring][C.outputs][C.vector] = {};

  TC_DEVICE SlidingThread(const Params& params, SlidingRows<T, C>& ring, const Strip& strip,
                          int channel)
      : p(params), rows(ring) {
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
    for (int row = 0; row < C.stages; ++row) ask_for(row, row);
  }

  TC_DEVICE void take_weights(const SlidingWeights<T, C>& staged, int lane_channel, int channel) {
#pragma unroll
    for (int tap = 0; tap < C.taps * C.taps; ++tap)
#pragma unroll
      for (int i = 0; i < C.vector; ++i) weights[tap][i] = staged.at[tap][lane_channel + i];
    const T* from = static_cast<const T*>(p.bias);
#pragma unroll
    for (int i = 0; i < C.vector; ++i)
      bias[i] = from ? float(from[(channel + i) * p.bias_stride]) : -0.0f;  // changes no sum
  }

  TC_DEVICE void slide() {
    for (int row = 0; row < seen; row += period) {
#pragma unroll
      for (int turn = 0; turn < period; ++turn)
        if (row + turn < seen) step(row + turn, turn);
    }
  }

 private:
  TC_DEVICE bool has_row(int row) const { return row >= begin && row < end; }

  // Copies of columns outside are zeros, and read nothing.
  TC_DEVICE void ask_for(int row, int to) {
    const int wanted = has_row(row) ? columns_in : 0;
    const T* from = x;
#pragma unroll
    for (int i = 0; i < span; ++i, from += p.x_at.column)
      copy_async(&rows.of[to][i][threadIdx.x], from, (wanted >> i & 1) * int(sizeof(Values)));
    ptx::cp_async_commit_group();
    x += p.x_at.row;
  }
  TC_DEVICE static void copy_async(Values* to, const T* from, int bytes) {
    static_assert(sizeof(Values) == 4 || sizeof(Values) == 8);
    if constexpr (sizeof(Values) == 4)
      ptx::cp_async_ca_4(to, from, bytes);
    else
      ptx::cp_async_ca_8(to, from, bytes);
  }

  // Which row of its window the sums in a slot need at that turn; from C.taps on: none.
  TC_DEVICE static constexpr int window_row(int turn, int slot) {
    return (turn % period + period - slot * C.stride) % period;
  }

  // Adds a row of x to row r of the windows of one row of sums.
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
    ptx::cp_async_wait_group<C.stages - 1>();
    float from[span][C.vector];
#pragma unroll
    for (int i = 0; i < span; ++i) to_floats(from[i], rows.of[slot][i][threadIdx.x]);
    ask_for(row + C.stages, slot);
    slot = slot + 1 < C.stages ? slot + 1 : 0;
#pragma unroll
    for (int i = 0; i < ring; ++i)
      if (window_row(turn, i) < C.taps) add_row(sums[i], from, window_row(turn, i));
#pragma unroll
    for (int i = 0; i < ring; ++i) {
      if (window_row(turn, i) != C.taps - 1) continue;
      store(sums[i], row);
#pragma unroll
      for (auto& output : sums[i])
#pragma unroll
        for (float& sum : output) sum = 0;
    }
  }
};

template <class T, Config C>
struct SlidingShared {
  SlidingWeights<T, C> weights;
  SlidingRows<T, C> rows;
};

struct Sliding {
  template <class T, Config C>
  TC_DEVICE static void run(const Params& p) {
    constexpr int channels = SlidingWeights<T, C>::channels, lanes = channels / C.vector;
    auto& shared = static_shared<SlidingShared<T, C>>();
    const uint32_t parts = (uint32_t(p.groups) + channels - 1) / channels;
    const int first_channel = int(blockIdx.x % parts) * channels;
    const int lane_channel = int(threadIdx.x) % lanes * C.vector;
    const int channel = first_channel + lane_channel;
    const uint32_t index = blockIdx.x / parts * (C.threads / lanes) + threadIdx.x / lanes;
    const bool exists = index < p.strips && channel < int(p.groups);
    SlidingThread<T, C> thread(p, shared.rows, Strip(p, exists, index, C.outputs), channel);
    thread.ask_for_first();
    shared.weights.stage(p, first_channel);
    __syncthreads();
    if (!exists) return;
    thread.take_weights(shared.weights, lane_channel, channel);
    thread.slide();
  }
};

}  // namespace tensorcraft::kernel::conv2d
