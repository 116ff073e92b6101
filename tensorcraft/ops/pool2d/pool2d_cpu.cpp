// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/ops/pool2d/problem.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tensorcraft::kernel::pool2d {
namespace {

const std::byte* address(const TensorView& t, int64_t n, int64_t y, int64_t x, int64_t c) {
  return t.data_as<const std::byte>() +
         op::image_strides(t).offset(n, y, x, c) * int64_t(dtype_bytes(t.dtype()));
}

// The taps of a window that lie in the image.
int64_t taps_inside(const WindowAxis& a, int64_t i) {
  int64_t count = 0;
  for (int64_t tap = 0; tap < a.taps; ++tap) count += a.has(a.at(i, tap));
  return count;
}

// The channels of one place of the result.
void pool_place(const Problem& q, int64_t sample, int64_t row, int64_t column) {
  const WindowAxis &rows = q.window.rows, &columns = q.window.columns;
  const int64_t n = q.x.shape(3);
  float* values = host::scratch(host::Slot::row_a, n);
  float* buffer = host::scratch(host::Slot::row_b, n);
  std::fill_n(values, n, q.mean ? 0 : -std::numeric_limits<float>::infinity());
  for (int64_t r = 0; r < rows.taps; ++r) {
    if (!rows.has(rows.at(row, r))) continue;
    for (int64_t s = 0; s < columns.taps; ++s) {
      const int64_t y = rows.at(row, r), x = columns.at(column, s);
      if (!columns.has(x)) continue;
      host::load_row(buffer, address(q.x, sample, y, x, 0), q.x.dtype(), q.x.stride(3), n);
      q.mean ? host::row_add(values, buffer, n) : host::row_maximum(values, buffer, n);
    }
  }
  if (q.mean) {
    const int64_t taps = taps_inside(rows, row) * taps_inside(columns, column);
    const int64_t count = q.count_padding ? rows.taps * columns.taps : taps;
    if (taps > 0)
      for (int64_t i = 0; i < n; ++i) values[i] /= float(count);
  }
  host::store_row(const_cast<std::byte*>(address(q.out, sample, row, column, 0)), values,
                  q.out.dtype(), q.out.stride(3), n);
}

}  // namespace

void cpu(const Problem& q) {
  const int64_t rows = q.window.rows.out, columns = q.window.columns.out;
  host::for_each_row(q.x.shape(0) * rows, columns * q.x.shape(3), [&](int64_t line) {
    for (int64_t x = 0; x < columns; ++x) pool_place(q, line / rows, line % rows, x);
  });
}

void reference(const Problem& q) {
  const host::Elements from(q.x), out(q.out);
  const WindowAxis &rows = q.window.rows, &columns = q.window.columns;
  const int64_t channels = q.x.shape(3);
  int64_t i = 0;
  for (int64_t n = 0; n < q.x.shape(0); ++n)
    for (int64_t y = 0; y < rows.out; ++y)
      for (int64_t x = 0; x < columns.out; ++x)
        for (int64_t c = 0; c < channels; ++c, ++i) {
          double sum = 0, most = -std::numeric_limits<double>::infinity(), taps = 0;
          for (int64_t r = 0; r < rows.taps; ++r)
            for (int64_t s = 0; s < columns.taps; ++s) {
              const int64_t iy = rows.at(y, r), ix = columns.at(x, s);
              if (!rows.has(iy) || !columns.has(ix)) continue;
              const double v = from[((n * rows.in + iy) * columns.in + ix) * channels + c];
              sum += v;
              most = std::isnan(v) || std::isnan(most) ? std::nan("") : std::max(most, v);
              ++taps;
            }
          const double count = q.count_padding ? double(rows.taps * columns.taps) : taps;
          out.set(i, !q.mean ? most : taps > 0 ? sum / count : 0);
        }
}

}  // namespace tensorcraft::kernel::pool2d
