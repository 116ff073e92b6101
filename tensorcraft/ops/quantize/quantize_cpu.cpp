// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/quantize/problem.hpp"

#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/ops/quantize/scale.cuh"

#include <vector>

namespace tensorcraft::kernel::quantize {
namespace {

// Calls f with a null pointer of the quantised type.
template <class F>
auto with_narrow_type(DType dtype, F&& f) {
  if (dtype == DType::int8) return f(static_cast<int8_t*>(nullptr));
  if (dtype == DType::float8_e5m2) return f(static_cast<e5m2*>(nullptr));
  return f(static_cast<e4m3*>(nullptr));
}

float zero_point_at(const Problem& q, int64_t at) {
  return q.zero_point ? float(q.zero_point->data_as<const int32_t>()[at]) : 0.0f;
}

// Scales are in float32 by definition: float arithmetic is their reference too.
Scale scale_at(const Problem& q, int64_t at) {
  return {q.scales->data_as<const float>()[at], zero_point_at(q, at)};
}

void widen(Range& range, const Range& by) {
  range.high = fmax_nan(range.high, by.high);
  range.low = fmax_nan(range.low, by.low);
}

// Scales and zero points from the range of each tile, and 0 behind a padded column.
void store_scales(const Problem& q, const std::vector<Range>& ranges) {
  const Tiles& t = q.tiles;
  const auto store = [&](int64_t at, const Scale& s) {
    q.scales->data_as<float>()[at] = s.scale;
    if (q.asymmetric) q.zero_point->data_as<int32_t>()[at] = int32_t(s.zero_point);
  };
  with_narrow_type(q.out.dtype(), [&]<class Q>(Q*) {
    for (int64_t i = 0; i < t.row_tiles; ++i)
      for (int64_t j = 0; j < t.col_tiles; ++j)
        store(t.scale_at(i, j),
              scale_of<Q>(ranges[size_t(i * t.col_tiles + j)], q.asymmetric, q.power_of_two));
  });
  for (int64_t i = t.row_tiles; i < t.padded_rows; ++i)
    for (int64_t j = 0; j < t.col_tiles; ++j) store(t.scale_at(i, j), {});
}

// The range of each tile: of its part of each row, on all threads, then of those together.
void find_scales(const Problem& q, const host::Rows& x) {
  const Tiles& t = q.tiles;
  std::vector<Range> of_rows(size_t(t.rows * t.col_tiles));
  host::for_each_row(t.rows, t.cols, [&](int64_t row) {
    const float* values = x.read(row, host::scratch(host::Slot::row_a, t.cols));
    for (int64_t j = 0; j < t.col_tiles; ++j) {
      Range& range = of_rows[size_t(row * t.col_tiles + j)];
      for (int64_t i = j * t.tile_cols; i < t.last_col(j); ++i)
        widen(range, values[i], q.asymmetric);
    }
  });
  std::vector<Range> of_tiles(size_t(t.row_tiles * t.col_tiles));
  for (int64_t row = 0; row < t.rows; ++row)
    for (int64_t j = 0; j < t.col_tiles; ++j)
      widen(of_tiles[size_t(t.row_tile_of(row) * t.col_tiles + j)],
            of_rows[size_t(row * t.col_tiles + j)]);
  store_scales(q, of_tiles);
}

}  // namespace

void cpu(const Problem& q) {
  const Tiles& t = q.tiles;
  const host::Rows x(q.x);
  if (!q.given) find_scales(q, x);
  const RowMap rows = op::row_map(q.out, q.out.rank() - 1);
  const int64_t step = q.out.strides().back();
  with_narrow_type(q.out.dtype(), [&]<class Q>(Q*) {
    host::for_each_row(t.rows, t.cols, [&](int64_t row) {
      const float* values = x.read(row, host::scratch(host::Slot::row_a, t.cols));
      Q* out = q.out.data_as<Q>() + rows.offset(row);
      for (int64_t j = 0; j < t.col_tiles; ++j) {
        const Scale s = scale_at(q, t.scale_at(t.row_tile_of(row), j));
        for (int64_t i = j * t.tile_cols; i < t.last_col(j); ++i)
          out[i * step] = to_code<Q>(values[i] / s.scale, s.zero_point);
      }
    });
  });
}

void reference(const Problem& q) {
  const Tiles& t = q.tiles;
  const host::Elements x(q.x), out(q.out);
  const auto tile_of = [&](int64_t i) {
    return std::pair(t.row_tile_of(i / t.cols), i % t.cols / t.tile_cols);
  };
  if (!q.given) {
    std::vector<Range> ranges(size_t(t.row_tiles * t.col_tiles));
    for (int64_t i = 0; i < q.x.size(); ++i) {
      const auto [row_tile, col_tile] = tile_of(i);
      widen(ranges[size_t(row_tile * t.col_tiles + col_tile)], float(x[i]), q.asymmetric);
    }
    store_scales(q, ranges);
  }
  with_narrow_type(q.out.dtype(), [&]<class Q>(Q*) {
    for (int64_t i = 0; i < q.x.size(); ++i) {
      const auto [row_tile, col_tile] = tile_of(i);
      const Scale s = scale_at(q, t.scale_at(row_tile, col_tile));
      *reinterpret_cast<Q*>(out.address(i)) = to_code<Q>(float(x[i]) / s.scale, s.zero_point);
    }
  });
}

void dequantize_cpu(const Problem& q) {
  const Tiles& t = q.tiles;
  const host::Rows out(q.out);
  const RowMap rows = op::row_map(q.x, q.x.rank() - 1);
  const int64_t step = q.x.strides().back();
  with_narrow_type(q.x.dtype(), [&]<class Q>(Q*) {
    host::for_each_row(t.rows, t.cols, [&](int64_t row) {
      const Q* x = q.x.data_as<const Q>() + rows.offset(row);
      float* y = out.target(row, host::scratch(host::Slot::row_a, t.cols));
      for (int64_t j = 0; j < t.col_tiles; ++j) {
        const Scale s = scale_at(q, t.scale_at(t.row_tile_of(row), j));
        for (int64_t i = j * t.tile_cols; i < t.last_col(j); ++i)
          y[i] = (float(x[i * step]) - s.zero_point) * s.scale;
      }
      out.commit(row, y);
    });
  });
}

void dequantize_reference(const Problem& q) {
  const Tiles& t = q.tiles;
  const host::Elements x(q.x), out(q.out);
  for (int64_t i = 0; i < q.x.size(); ++i) {
    const int64_t at = t.scale_at(t.row_tile_of(i / t.cols), i % t.cols / t.tile_cols);
    out.set(i,
            (x[i] - double(zero_point_at(q, at))) * double(q.scales->data_as<const float>()[at]));
  }
}

}  // namespace tensorcraft::kernel::quantize
