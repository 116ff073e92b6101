// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/conv_activation.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/gemm.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/host/simd.hpp"
#include "tensorcraft/ops/depthwise_separable_conv2d/problem.hpp"

#include <algorithm>
#include <vector>

namespace tensorcraft::kernel::depthwise_separable_conv2d {
namespace {

using host::Slot;

constexpr int64_t kPlacesOfBlock = 256;  // of one product: what is filtered stays in a cache

// to += a b
TC_HOST_CLONES void add_products(float* to, const float* a, const float* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += a[i] * b[i];
}

const std::byte* address(const TensorView& t, const ImageStrides& at, int64_t n, int64_t y,
                         int64_t x, int64_t c = 0) {
  return t.data_as<const std::byte>() + at.offset(n, y, x, c) * int64_t(dtype_bytes(t.dtype()));
}

std::vector<float> floats_of(const std::optional<TensorView>& t) {
  std::vector<float> all(t ? size_t(t->size()) : 0);
  if (t) host::load_row(all.data(), t->data(), t->dtype(), t->stride(0), t->size());
  return all;
}

// All threads of a call share one and only read it.
class Separable {
 public:
  explicit Separable(const Problem& q)
      : q_(q),
        rows_(q.window.rows),
        columns_(q.window.columns),
        channels_(q.channels()),
        dtype_(q.x.dtype()),
        windows_(size_t(q.taps() * channels_)),
        depthwise_bias_(floats_of(q.depthwise_bias)),
        bias_(floats_of(q.bias)) {
    const ImageStrides at = op::image_strides(q.depthwise);
    for (int64_t r = 0; r < rows_.taps; ++r)
      for (int64_t s = 0; s < columns_.taps; ++s)
        host::load_row(windows_.data() + (r * columns_.taps + s) * channels_,
                       address(q.depthwise, at, 0, r, s), dtype_, at.sample, channels_);
  }

  void run() const {
    const int64_t of_block = std::max<int64_t>(1, kPlacesOfBlock / columns_.out);
    const int64_t lines = q_.x.shape(0) * rows_.out;
    host::parallel_for(div_ceil(lines, of_block), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        lines_of(i * of_block, std::min(lines, (i + 1) * of_block));
    });
  }

 private:
  // The rows of the result from `begin` to `end`, counted through all images.
  void lines_of(int64_t begin, int64_t end) const {
    const int64_t filters = q_.filters(), places = (end - begin) * columns_.out;
    float* middle = host::scratch(Slot::row_a, places * channels_);
    for (int64_t line = begin; line < end; ++line)
      filter_line(middle + (line - begin) * columns_.out * channels_, line);
    float* sums = host::scratch(Slot::row_b, places * filters);
    host::gemm({.m = places,
                .n = filters,
                .k = channels_,
                .a = {middle, DType::float32, channels_, 1, 0},
                .b = {q_.pointwise.data(), dtype_, q_.pointwise.stride(3), q_.pointwise.stride(0)},
                .d = {sums, DType::float32, filters, 1, 0}});
    for (int64_t line = begin; line < end; ++line)
      for (int64_t x = 0; x < columns_.out; ++x, sums += filters) finish(sums, line, x);
  }

  // The values between the convolutions of a row of places, [columns][channels].
  void filter_line(float* to, int64_t line) const {
    const int64_t sample = line / rows_.out, row = line % rows_.out;
    std::fill_n(to, columns_.out * channels_, 0.0f);
    for (int64_t r = 0; r < rows_.taps; ++r)
      add_input_row(to, sample, rows_.at(row, r), windows_.data() + r * columns_.taps * channels_);
    for (int64_t x = 0; x < columns_.out; ++x, to += channels_) {
      if (q_.depthwise_bias) host::row_add(to, depthwise_bias_.data(), channels_);
      host::row_activate(q_.depthwise_activation, to, channels_);
      if (dtype_ == DType::float32) continue;
      std::byte* rounded = reinterpret_cast<std::byte*>(host::scratch(Slot::row_c, channels_));
      host::store_row(rounded, to, dtype_, 1, channels_);
      host::load_row(to, rounded, dtype_, 1, channels_);
    }
  }

  // Outside the image: zeros, which make a NaN of a weight that is not finite.
  void add_input_row(float* to, int64_t sample, int64_t y, const float* windows) const {
    const ImageStrides at = op::image_strides(q_.x);
    float* from = host::scratch(Slot::row_c, channels_ * (columns_.in + 1));
    float* const zeros = from + columns_.in * channels_;
    std::fill_n(zeros, channels_, 0.0f);
    if (rows_.has(y))
      for (int64_t x = 0; x < columns_.in; ++x)
        host::load_row(from + x * channels_, address(q_.x, at, sample, y, x), dtype_, at.channel,
                       channels_);
    for (int64_t x = 0; x < columns_.out; ++x)
      for (int64_t s = 0; s < columns_.taps; ++s) {
        const int64_t column = columns_.at(x, s);
        const bool inside = rows_.has(y) && columns_.has(column);
        add_products(to + x * channels_, inside ? from + column * channels_ : zeros,
                     windows + s * channels_, channels_);
      }
  }

  void finish(float* sums, int64_t line, int64_t column) const {
    const int64_t sample = line / rows_.out, row = line % rows_.out, filters = q_.filters();
    if (q_.bias) host::row_add(sums, bias_.data(), filters);
    if (q_.residual) {
      const ImageStrides at = op::image_strides(*q_.residual);
      float* add = host::scratch(Slot::row_d, filters);
      host::load_row(add, address(*q_.residual, at, sample, row, column), dtype_, at.channel,
                     filters);
      host::row_add(sums, add, filters);
    }
    host::row_activate(q_.activation, sums, filters);
    const ImageStrides at = op::image_strides(q_.out);
    host::store_row(const_cast<std::byte*>(address(q_.out, at, sample, row, column)), sums, dtype_,
                    at.channel, filters);
  }

  const Problem& q_;
  const WindowAxis rows_, columns_;
  const int64_t channels_;
  const DType dtype_;
  std::vector<float> windows_;  // [taps][channels]
  const std::vector<float> depthwise_bias_, bias_;
};

}  // namespace

void cpu(const Problem& q) {
  if (q.out.size() != 0) Separable(q).run();
}

void reference(const Problem& q) {
  const auto values = [](const std::optional<TensorView>& t) {
    return t ? host::Elements(*t).all() : std::vector<double>();
  };
  const auto x = values(q.x), depthwise = values(q.depthwise), pointwise = values(q.pointwise),
             depthwise_bias = values(q.depthwise_bias), bias = values(q.bias),
             residual = values(q.residual);
  const host::Elements out(q.out);
  const WindowAxis &rows = q.window.rows, &columns = q.window.columns;
  const int64_t channels = q.channels(), filters = q.filters();
  // The values between the convolutions of a place, rounded to the dtype as out's are.
  Tensor rounded(q.x.dtype(), {channels});
  const host::Elements middle(rounded);
  int64_t i = 0;
  for (int64_t n = 0; n < q.x.shape(0); ++n)
    for (int64_t y = 0; y < rows.out; ++y)
      for (int64_t column = 0; column < columns.out; ++column) {
        for (int64_t c = 0; c < channels; ++c) {
          double sum = q.depthwise_bias ? depthwise_bias[size_t(c)] : 0;
          for (int64_t r = 0; r < rows.taps; ++r)
            for (int64_t s = 0; s < columns.taps; ++s) {
              const int64_t iy = rows.at(y, r), ix = columns.at(column, s);
              const bool inside = rows.has(iy) && columns.has(ix);
              const int64_t pixel = (n * rows.in + iy) * columns.in + ix;
              sum += (inside ? x[size_t(pixel * channels + c)] : 0.0) *
                     depthwise[size_t((c * rows.taps + r) * columns.taps + s)];
            }
          middle.set(c, host::activate(q.depthwise_activation, sum));
        }
        const std::vector<double> between = middle.all();
        for (int64_t f = 0; f < filters; ++f, ++i) {
          double sum = q.bias ? bias[size_t(f)] : 0;
          for (int64_t c = 0; c < channels; ++c)
            sum += between[size_t(c)] * pointwise[size_t(f * channels + c)];
          if (q.residual) sum += residual[size_t(i)];
          out.set(i, host::activate(q.activation, sum));
        }
      }
}

}  // namespace tensorcraft::kernel::depthwise_separable_conv2d
