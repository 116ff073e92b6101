// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/interrupt.hpp"
#include "tensorcraft/op/host/conv_activation.hpp"
#include "tensorcraft/op/host/element_type.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/gemm.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/host/simd.hpp"
#include "tensorcraft/ops/conv2d/problem.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace tensorcraft::kernel::conv2d {
namespace {

using host::Slot;

constexpr int64_t kPlacesOfBlock = 256;  // of one product: its windows stay in a cache
constexpr int64_t kFewBlocks = 32;       // one product for all threads takes fewer
constexpr int64_t kFloatsOfBuffers = int64_t(1) << 24;  // of a product that all threads share

// to += a b
TC_HOST_CLONES void add_products(float* to, const float* a, const float* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += a[i] * b[i];
}

const std::byte* address(const TensorView& t, const ImageStrides& at, int64_t n, int64_t y,
                         int64_t x, int64_t c) {
  return t.data_as<const std::byte>() + at.offset(n, y, x, c) * int64_t(dtype_bytes(t.dtype()));
}

// The outputs of a row whose input at a tap lies in the image.
struct Range {
  int64_t begin, end;
};
Range inside(const WindowAxis& a, int64_t tap) {
  const int64_t shift = tap * a.dilation - a.before;  // input of output i: i * stride + shift
  const int64_t begin = shift >= 0 ? 0 : div_ceil(-shift, a.stride);
  const int64_t last = a.in - 1 - shift;
  const int64_t end = last < 0 ? 0 : last / a.stride + 1;
  return {std::min(begin, a.out), std::clamp(end, std::min(begin, a.out), a.out)};
}

// All threads of a call share one and only read it.
class Convolution {
 public:
  explicit Convolution(const Problem& q)
      : q_(q),
        rows_(q.window.rows),
        columns_(q.window.columns),
        x_at_(op::image_strides(q.x)),
        out_at_(op::image_strides(q.out)),
        last_(out_at_.channel == 1),
        dtype_(q.x.dtype()) {
    if (q.residual) residual_at_ = op::image_strides(*q.residual);
    if (q.bias) {
      bias_.resize(size_t(q.bias->size()));
      host::load_row(bias_.data(), q.bias->data(), dtype_, q.bias->stride(0), q.bias->size());
    }
  }

  void run() {
    if (q_.channels() == 1 && q_.filters() == 1)
      last_&& x_at_.channel == 1 ? depthwise_channels_last() : depthwise_planes();
    else
      products();
  }

 private:
  // A line of results, in place: filters from `filter` on at one place if channels are last, else
  // the columns of one filter.
  void finish(float* x, int64_t n, int64_t sample, int64_t row, int64_t column, int64_t filter) {
    if (q_.bias && last_) host::row_add(x, bias_.data() + filter, n);
    if (q_.bias && !last_) host::row_scale(x, x, 1, bias_[size_t(filter)], n);
    if (q_.residual) {
      float* add = host::scratch(Slot::row_d, n);
      host::load_row(add, address(*q_.residual, residual_at_, sample, row, column, filter), dtype_,
                     last_ ? residual_at_.channel : residual_at_.column, n);
      host::row_add(x, add, n);
    }
    host::row_activate(q_.activation, x, n);
    host::store_row(const_cast<std::byte*>(address(q_.out, out_at_, sample, row, column, filter)),
                    x, dtype_, last_ ? out_at_.channel : out_at_.column, n);
  }

  // ---- Products: the windows of some places, times the filters of a group.

  void products() {
    const std::vector<float> w = filters_as_rows();
    const int64_t rows = std::max<int64_t>(1, kPlacesOfBlock / columns_.out);
    const int64_t blocks = div_ceil(rows_.out, rows), all = q_.x.shape(0) * q_.groups * blocks;
    // Small images, and those that are the matrix already, leave the threads to one large product.
    if (is_matrix() || all < kFewBlocks) return large_products(w);
    host::parallel_for(all, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % blocks * rows;
        multiply(i / blocks / q_.groups, i / blocks % q_.groups, first,
                 std::min(rows, rows_.out - first), w);
      }
    });
  }

  // Is a window one place, and does x have the places one behind the other?
  bool is_matrix() const {
    const auto plain = [](const WindowAxis& a) {
      return a.taps == 1 && a.stride == 1 && a.before == 0 && a.out == a.in;
    };
    return plain(rows_) && plain(columns_) && x_at_.channel == 1 &&
           (rows_.in == 1 || x_at_.row == columns_.in * x_at_.column) &&
           (q_.x.shape(0) == 1 || x_at_.sample == rows_.in * columns_.in * x_at_.column);
  }

  // As many images at once as fit the buffers.
  void large_products(const std::vector<float>& w) {
    const int64_t places = rows_.out * columns_.out, batch = q_.x.shape(0);
    const int64_t k = is_matrix() ? 0 : q_.taps() * q_.channels();
    const int64_t images =
        std::clamp<int64_t>(kFloatsOfBuffers / (places * (k + q_.filters())), 1, batch);
    const auto floats = [](int64_t n) {
      return std::make_unique_for_overwrite<float[]>(size_t(n));
    };
    const auto windows = floats(images * places * k), sums = floats(images * places * q_.filters());
    for (int64_t group = 0; group < q_.groups; ++group)
      for (int64_t first = 0; first < batch; first += images)
        multiply_images(first, std::min(images, batch - first), group, windows.get(), sums.get(),
                        w);
  }

  void multiply_images(int64_t first, int64_t images, int64_t group, float* windows, float* sums,
                       const std::vector<float>& w) {
    const int64_t places = images * rows_.out * columns_.out, lines = images * rows_.out;
    const int64_t k = q_.taps() * q_.channels(), filters = q_.filters();
    const auto for_lines = [&](auto&& f) {
      host::for_each_row(lines, columns_.out * std::max(k, filters), [&](int64_t line) {
        f(first + line / rows_.out, line % rows_.out, line * columns_.out);
      });
    };
    if (!is_matrix())
      for_lines([&](int64_t sample, int64_t row, int64_t place) {
        x_at_.channel == 1 ? take_places(windows + place * k, sample, group, row)
                           : take_lines(windows + place, places, sample, group, row);
      });
    multiply_into(sums, places, group, w,
                  is_matrix() ? host::ConstMatrix{address(q_.x, x_at_, first, 0, 0, group * k),
                                                  dtype_, x_at_.column, 1, 0}
                              : windows_of(windows, places));
    for_lines([&](int64_t sample, int64_t row, int64_t place) {
      finish_row(sums, places, place, sample, row, group);
    });
  }

  host::ConstMatrix windows_of(const float* windows, int64_t places) const {
    const bool by_place = x_at_.channel == 1;
    return {windows, DType::float32, by_place ? q_.taps() * q_.channels() : 1,
            by_place ? 1 : places, 0};
  }

  // sums: [places][filters], or the reverse if channels are not last.
  void multiply_into(float* sums, int64_t places, int64_t group, const std::vector<float>& w,
                     const host::ConstMatrix& windows) const {
    const int64_t k = q_.taps() * q_.channels(), filters = q_.filters();
    host::GemmProblem g{.m = places, .n = filters, .k = k, .a = windows};
    g.b = {w.data() + group * filters * k, DType::float32, 1, k, 0};
    g.d = {sums, DType::float32, last_ ? filters : 1, last_ ? 1 : places, 0};
    host::gemm(g);
  }

  // Finishes a row of results, whose first place is number `place` of `places`.
  void finish_row(float* sums, int64_t places, int64_t place, int64_t sample, int64_t row,
                  int64_t group) {
    const int64_t filters = q_.filters();
    if (last_)
      for (int64_t x = 0; x < columns_.out; ++x)
        finish(sums + (place + x) * filters, filters, sample, row, x, group * filters);
    else
      for (int64_t f = 0; f < filters; ++f)
        finish(sums + f * places + place, columns_.out, sample, row, 0, group * filters + f);
  }

  // [groups * filters][taps][channels].
  std::vector<float> filters_as_rows() const {
    const int64_t channels = q_.channels();
    std::vector<float> all(size_t(q_.w.size()));
    float* to = all.data();
    for (int64_t f = 0; f < q_.w.shape(0); ++f)
      for (int64_t r = 0; r < rows_.taps; ++r)
        for (int64_t s = 0; s < columns_.taps; ++s, to += channels)
          host::load_row(to, address(q_.w, op::image_strides(q_.w), f, r, s, 0), dtype_,
                         q_.w.stride(3), channels);
    return all;
  }

  void multiply(int64_t sample, int64_t group, int64_t first_row, int64_t num_rows,
                const std::vector<float>& w) {
    const int64_t places = num_rows * columns_.out, k = q_.taps() * q_.channels();
    float* windows = host::scratch(Slot::row_a, places * k);
    float* sums = host::scratch(Slot::row_b, places * q_.filters());
    for (int64_t row = 0; row < num_rows; ++row)
      x_at_.channel == 1
          ? take_places(windows + row * columns_.out * k, sample, group, first_row + row)
          : take_lines(windows + row * columns_.out, places, sample, group, first_row + row);
    multiply_into(sums, places, group, w, windows_of(windows, places));
    for (int64_t row = 0; row < num_rows; ++row)
      finish_row(sums, places, row * columns_.out, sample, first_row + row, group);
  }

  // The windows of a row of the result, [columns][taps][channels].
  void take_places(float* to, int64_t sample, int64_t group, int64_t row) const {
    const int64_t channels = q_.channels();
    for (int64_t x = 0; x < columns_.out; ++x)
      for (int64_t r = 0; r < rows_.taps; ++r)
        for (int64_t s = 0; s < columns_.taps; ++s, to += channels) {
          const int64_t y = rows_.at(row, r), column = columns_.at(x, s);
          if (rows_.has(y) && columns_.has(column))
            host::load_row(to, address(q_.x, x_at_, sample, y, column, group * channels), dtype_, 1,
                           channels);
          else
            std::fill_n(to, channels, 0.0f);
        }
  }

  // Writes the windows as [taps][channels][places], of which this row has some columns.
  void take_lines(float* to, int64_t places, int64_t sample, int64_t group, int64_t row) const {
    const int64_t channels = q_.channels();
    for (int64_t r = 0; r < rows_.taps; ++r)
      for (int64_t s = 0; s < columns_.taps; ++s)
        for (int64_t c = 0; c < channels; ++c, to += places)
          take_line(to, sample, rows_.at(row, r), s, group * channels + c);
  }

  // The inputs of a row of results at one tap, 0 outside the image.
  void take_line(float* to, int64_t sample, int64_t y, int64_t s, int64_t channel) const {
    const Range in = rows_.has(y) ? inside(columns_, s) : Range{0, 0};
    std::fill_n(to, in.begin, 0.0f);
    if (in.end > in.begin)
      host::load_row(to + in.begin,
                     address(q_.x, x_at_, sample, y, columns_.at(in.begin, s), channel), dtype_,
                     columns_.stride * x_at_.column, in.end - in.begin);
    std::fill(to + in.end, to + columns_.out, 0.0f);
  }

  // ---- Depthwise: no sum over channels, so rows are added up.

  void depthwise_channels_last() {
    const int64_t channels = q_.groups;
    std::vector<float> w(size_t(q_.taps() * channels));  // [taps][channels]
    for (int64_t r = 0; r < rows_.taps; ++r)
      for (int64_t s = 0; s < columns_.taps; ++s)
        host::load_row(w.data() + (r * columns_.taps + s) * channels,
                       address(q_.w, op::image_strides(q_.w), 0, r, s, 0), dtype_, q_.w.stride(0),
                       channels);
    const int64_t lines = q_.x.shape(0) * rows_.out;
    host::for_each_row(lines, columns_.out * channels, [&](int64_t line) {
      const int64_t sample = line / rows_.out, row = line % rows_.out;
      float* sums = host::scratch(Slot::row_a, columns_.out * channels);
      std::fill_n(sums, columns_.out * channels, 0.0f);
      for (int64_t r = 0; r < rows_.taps; ++r)
        add_input_row(sums, sample, rows_.at(row, r), w.data() + r * columns_.taps * channels);
      for (int64_t x = 0; x < columns_.out; ++x)
        finish(sums + x * channels, channels, sample, row, x, 0);
    });
  }

  void add_input_row(float* sums, int64_t sample, int64_t y, const float* w) const {
    const int64_t channels = q_.groups;
    float* buffer = dtype_ == DType::float32 ? nullptr : host::scratch(Slot::row_b, channels);
    const auto add_zeros = [&](int64_t begin, int64_t end, int64_t s) {
      if (begin >= end) return;
      float* zeros = host::scratch(Slot::row_c, channels);
      std::fill_n(zeros, channels, 0.0f);
      for (int64_t x = begin; x < end; ++x)
        add_products(sums + x * channels, zeros, w + s * channels, channels);
    };
    for (int64_t s = 0; s < columns_.taps; ++s) {
      const Range in = rows_.has(y) ? inside(columns_, s) : Range{0, 0};
      add_zeros(0, in.begin, s);
      add_zeros(in.end, columns_.out, s);
      for (int64_t x = in.begin; x < in.end; ++x) {
        const void* from = address(q_.x, x_at_, sample, y, columns_.at(x, s), 0);
        if (buffer) host::load_row(buffer, from, dtype_, 1, channels);
        add_products(sums + x * channels, buffer ? buffer : static_cast<const float*>(from),
                     w + s * channels, channels);
      }
    }
  }

  void depthwise_planes() {
    const host::Elements w(q_.w);
    const int64_t taps = q_.taps(), lines = q_.x.shape(0) * q_.groups * rows_.out;
    std::vector<float> weights(size_t(q_.w.size()));
    for (int64_t i = 0; i < q_.w.size(); ++i) weights[size_t(i)] = float(w[i]);
    host::for_each_row(lines, columns_.out * taps, [&](int64_t line) {
      const int64_t sample = line / (q_.groups * rows_.out), channel = line / rows_.out % q_.groups;
      const int64_t row = line % rows_.out, n = columns_.out;
      float* sums = host::scratch(Slot::row_a, n);
      float* input = host::scratch(Slot::row_b, n);
      std::fill_n(sums, n, 0.0f);
      for (int64_t r = 0; r < rows_.taps; ++r)
        for (int64_t s = 0; s < columns_.taps; ++s) {
          take_line(input, sample, rows_.at(row, r), s, channel);
          host::row_add_scaled(sums, input, weights[size_t(channel * taps + r * columns_.taps + s)],
                               n);
        }
      finish_plane_line(sums, sample, row, channel);
    });
  }

  void finish_plane_line(float* sums, int64_t sample, int64_t row, int64_t channel) {
    if (!last_) return finish(sums, columns_.out, sample, row, 0, channel);
    for (int64_t x = 0; x < columns_.out; ++x) finish(sums + x, 1, sample, row, x, channel);
  }

  const Problem& q_;
  const WindowAxis rows_, columns_;
  const ImageStrides x_at_, out_at_;
  ImageStrides residual_at_{};
  const bool last_;  // are the channels of the result side by side?
  const DType dtype_;
  std::vector<float> bias_;
};

}  // namespace

void cpu(const Problem& q) { Convolution(q).run(); }

void reference(const Problem& q) {
  const std::vector<double> x = host::Elements(q.x).all(), w = host::Elements(q.w).all();
  const host::Elements out(q.out), bias(q.bias.value_or(q.out)),
      residual(q.residual.value_or(q.out));
  const WindowAxis &rows = q.window.rows, &columns = q.window.columns;
  const int64_t channels = q.channels(), all = q.x.shape(3), filters = q.w.shape(0);
  int64_t i = 0;
  for (int64_t n = 0; n < q.x.shape(0); ++n)
    for (int64_t y = 0; y < rows.out; ++y)
      for (int64_t column = 0; column < columns.out; ++column)
        for (int64_t f = 0; f < filters; ++f, ++i) {
          check_interrupt();
          double sum = 0;
          for (int64_t r = 0; r < rows.taps; ++r)
            for (int64_t s = 0; s < columns.taps; ++s) {
              const int64_t iy = rows.at(y, r), ix = columns.at(column, s);
              const bool inside = rows.has(iy) && columns.has(ix);
              const int64_t pixel = (n * rows.in + iy) * columns.in + ix;
              for (int64_t c = 0; c < channels; ++c)
                sum += (inside ? x[size_t(pixel * all + f / q.filters() * channels + c)] : 0.0) *
                       w[size_t(((f * rows.taps + r) * columns.taps + s) * channels + c)];
            }
          if (q.bias) sum += bias[f];
          if (q.residual) sum += residual[i];
          out.set(i, host::activate(q.activation, sum));
        }
}

namespace {

// An element of all windows: one place after the other, as far as they lie in the image.
template <class T>
void copy_element(const Im2colProblem& q, const T* x, int64_t tap, T* out, int64_t stride) {
  const WindowAxis &rows = q.window.rows, &columns = q.window.columns;
  const ImageStrides at = op::image_strides(q.x);
  for (int64_t row = 0; row < rows.out; ++row) {
    const int64_t y = rows.at(row, tap / columns.taps), shift = tap % columns.taps;
    const Range in = rows.has(y) ? inside(columns, shift) : Range{0, 0};
    for (int64_t i = 0; i < in.begin; ++i, out += stride) *out = T();
    for (int64_t i = in.begin; i < in.end; ++i, out += stride)
      *out = x[at.offset(0, y, columns.at(i, shift), 0)];
    for (int64_t i = in.end; i < columns.out; ++i, out += stride) *out = T();
  }
}

// All elements of one window, the channels of a tap after each other.
template <class T>
void copy_window(const Im2colProblem& q, const T* x, int64_t position, T* out, int64_t stride) {
  const WindowAxis &rows = q.window.rows, &columns = q.window.columns;
  const int64_t channels = q.x.shape(3);
  const ImageStrides at = op::image_strides(q.x);
  for (int64_t r = 0; r < rows.taps; ++r)
    for (int64_t s = 0; s < columns.taps; ++s) {
      const int64_t y = rows.at(position / columns.out, r),
                    column = columns.at(position % columns.out, s);
      const bool is_inside = rows.has(y) && columns.has(column);
      const T* from = is_inside ? x + at.offset(0, y, column, 0) : nullptr;
      for (int64_t c = 0; c < channels; ++c, out += stride)
        *out = is_inside ? from[c * at.channel] : T();
    }
}

// Lines of the matrices of all images.
template <class T>
void copy_lines(const Im2colProblem& q, int64_t begin, int64_t end) {
  const int64_t taps = q.window.rows.taps * q.window.columns.taps, lines = q.out.shape(1);
  const ImageStrides at = op::image_strides(q.x);
  for (int64_t i = begin; i < end; ++i) {
    const int64_t sample = i / lines, line = i % lines;
    T* out = q.out.data_as<T>() + sample * q.out.stride(0) + line * q.out.stride(1);
    const T* image = q.x.data_as<const T>() + sample * at.sample;
    if (q.layout == ImageLayout::nchw)
      copy_element(q, image + line / taps * at.channel, line % taps, out, q.out.stride(2));
    else
      copy_window(q, image, line, out, q.out.stride(2));
  }
}

}  // namespace

void im2col_cpu(const Im2colProblem& q) {
  host::with_bits_of_size(dtype_bytes(q.x.dtype()), [&]<class T>(T*) {
    host::parallel_for(q.out.shape(0) * q.out.shape(1), host::row_grain(q.out.shape(2)),
                       [&](int64_t begin, int64_t end) { copy_lines<T>(q, begin, end); });
  });
}

void im2col_reference(const Im2colProblem& q) {
  const host::Elements x(q.x), out(q.out);
  const WindowAxis &rows = q.window.rows, &columns = q.window.columns;
  const int64_t channels = q.x.shape(3), positions = rows.out * columns.out;
  const int64_t taps = rows.taps * columns.taps, elements = taps * channels;
  const bool first = q.layout == ImageLayout::nchw;
  for (int64_t n = 0; n < q.x.shape(0); ++n)
    for (int64_t position = 0; position < positions; ++position)
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t y = rows.at(position / columns.out, tap / columns.taps);
          const int64_t column = columns.at(position % columns.out, tap % columns.taps);
          const int64_t i = first ? (n * elements + c * taps + tap) * positions + position
                                  : (n * positions + position) * elements + tap * channels + c;
          const bool is_inside = rows.has(y) && columns.has(column);
          out.set(i, is_inside ? x[((n * rows.in + y) * columns.in + column) * channels + c] : 0);
        }
}

}  // namespace tensorcraft::kernel::conv2d
