// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/ops/causal_conv1d/problem.hpp"

#include <algorithm>
#include <vector>

namespace tensorcraft::kernel::causal_conv1d {
namespace {

template <class Byte>
Byte* line(const TensorView& t, int64_t sample, int64_t token) {
  return t.data_as<Byte>() +
         (sample * t.stride(0) + token * t.stride(1)) * int64_t(dtype_bytes(t.dtype()));
}

// The channels of token t as floats; before the first comes the state.
void read_token(const Problem& q, float* to, int64_t sample, int64_t t) {
  const int64_t channels = q.channels();
  if (t >= 0)
    host::load_row(to, line<const std::byte>(q.x, sample, t), q.x.dtype(), q.x.stride(2), channels);
  else if (q.state)
    host::load_row(to, line<const std::byte>(*q.state, sample, t + q.width() - 1), q.state->dtype(),
                   q.state->stride(2), channels);
  else
    std::fill_n(to, channels, 0.0f);
}

// [taps][channels].
std::vector<float> weights_of(const Problem& q) {
  const int64_t channels = q.channels();
  std::vector<float> w(size_t(q.width() * channels));
  for (int64_t tap = 0; tap < q.width(); ++tap)
    host::load_row(
        w.data() + tap * channels,
        q.w.data_as<const std::byte>() + tap * q.w.stride(1) * int64_t(dtype_bytes(q.w.dtype())),
        q.w.dtype(), q.w.stride(0), channels);
  return w;
}

}  // namespace

void cpu(const Problem& q) {
  const int64_t channels = q.channels(), width = q.width();
  const std::vector<float> w = weights_of(q);
  std::vector<float> bias(size_t(q.bias ? channels : 0));
  if (q.bias)
    host::load_row(bias.data(), q.bias->data(), q.bias->dtype(), q.bias->stride(0), channels);
  host::for_each_row(q.x.shape(0) * q.tokens(), channels * width, [&](int64_t row) {
    const int64_t sample = row / q.tokens(), t = row % q.tokens();
    float* sum = host::scratch(host::Slot::row_a, channels);
    float* input = host::scratch(host::Slot::row_b, channels);
    std::fill_n(sum, channels, 0.0f);
    for (int64_t tap = 0; tap < width; ++tap) {
      read_token(q, input, sample, t - (width - 1) + tap);
      host::row_multiply(input, w.data() + tap * channels, channels);
      host::row_add(sum, input, channels);
    }
    if (q.bias) host::row_add(sum, bias.data(), channels);
    if (q.silu) host::row_activate(sum, sum, Activation::silu, channels);
    host::store_row(line<std::byte>(q.out, sample, t), sum, q.out.dtype(), q.out.stride(2),
                    channels);
  });
  if (!q.new_state) return;
  const int64_t before = width - 1;
  host::for_each_row(q.x.shape(0) * before, channels, [&](int64_t row) {
    float* input = host::scratch(host::Slot::row_a, channels);
    read_token(q, input, row / before, q.tokens() - before + row % before);
    host::store_row(line<std::byte>(*q.new_state, row / before, row % before), input, q.out.dtype(),
                    q.new_state->stride(2), channels);
  });
}

void reference(const Problem& q) {
  const host::Elements x(q.x), w(q.w), out(q.out), bias(q.bias.value_or(q.out)),
      state(q.state.value_or(q.out)), new_state(q.new_state.value_or(q.out));
  const int64_t batch = q.x.shape(0), tokens = q.tokens(), channels = q.channels();
  const int64_t width = q.width(), before = width - 1;
  const auto at = [&](int64_t n, int64_t t, int64_t c) {
    if (t >= 0) return x[(n * tokens + t) * channels + c];
    return q.state ? state[(n * before + t + before) * channels + c] : 0.0;
  };
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int64_t tap = 0; tap < width; ++tap)
          sum += w[c * width + tap] * at(n, t - before + tap, c);
        if (q.bias) sum += bias[c];
        out.set((n * tokens + t) * channels + c,
                q.silu ? host::activate(Activation::silu, sum) : sum);
      }
    for (int64_t i = 0; q.new_state && i < before; ++i)
      for (int64_t c = 0; c < channels; ++c)
        new_state.set((n * before + i) * channels + c, at(n, tokens - before + i, c));
  }
}

}  // namespace tensorcraft::kernel::causal_conv1d
