// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/reduce/problem.hpp"

#include "tensorcraft/op/checks/output_type.hpp"
#include "tensorcraft/ops/reduce/plan.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <vector>

namespace tensorcraft::kernel::reduce {
namespace {

// Kept axes, merged if x and out both allow it.
void set_rows(CallParams& p, const Problem& q) {
  RowMap x{}, out{};
  for (int i = 0; i < q.kept; ++i) {
    if (q.x.shape(i) == 1) continue;
    const int last = x.axes - 1;
    const int64_t size = q.x.shape(i), stride = q.x.stride(i), out_stride = q.out.stride(i);
    if (last >= 0 && x.stride[last] == stride * size && out.stride[last] == out_stride * size) {
      for (RowMap* map : {&x, &out}) map->size[last] *= size;
      x.stride[last] = stride;
      out.stride[last] = out_stride;
    } else {
      add_axis(x, size, stride);
      add_axis(out, size, out_stride);
    }
  }
  p.set_map(Params::kX, x);
  p.set_map(Params::kOut, out);
}

// Reduced axes: the last one after merging is a run.
void set_runs(CallParams& p, const Problem& q) {
  RowMap map{};
  for (int i = q.kept; i < q.x.rank(); ++i) {
    const int64_t size = q.x.shape(i), stride = q.x.stride(i);
    if (size == 1) continue;
    const int last = map.axes - 1;
    if (last >= 0 && map.stride[last] == stride * size) {
      map.size[last] *= size;
      map.stride[last] = stride;
    } else {
      add_axis(map, size, stride);
    }
  }
  p.cols = p.x_step = p.segments = 1;
  if (map.axes == 0) return;
  const int last = --map.axes;
  p.cols = map.size[last];
  p.x_step = map.stride[last];
  map.size[last] = map.stride[last] = 0;
  for (int i = 0; i < last; ++i) p.segments *= map.size[i];
  p.set_map(Params::kSegments, map);
}

}  // namespace

DType own_dtype(Operation operation, DType x) {
  switch (operation) {
    case Operation::argmax:
    case Operation::argmin:
    case Operation::count:
      return DType::int64;
    case Operation::any:
    case Operation::all:
      return DType::bool_;
    case Operation::sum:
    case Operation::prod:
      return is_floating(x) ? x : DType::int64;
    case Operation::float_prod:
      return DType::float32;
    default:
      return x;
  }
}

CallParams params(const Problem& q) {
  CallParams p{{.x = q.x.data(), .out = q.out.writable_data(), .rows = q.outputs()}, {}};
  set_rows(p, q);
  set_runs(p, q);
  p.repeats = q.repeats;
  p.count = float(q.length());
  p.divisor = float(q.divisor());
  p.out_type = op::output_type(q.out.dtype(), own_dtype(q.operation, q.x.dtype()));
  return p;
}

Problem make_problem(Operation operation, const TensorView& out, const TensorView& whole,
                     unsigned reduced, float correction) {
  // Along a reduced axis without a stride all elements are one. An index counts them, but is 0
  // if there is no other axis.
  const auto repeats_along = [&](int axis) {
    return (reduced >> axis & 1) && whole.stride(axis) == 0 && whole.shape(axis) > 1;
  };
  bool leaves_out = true;
  for (int i = 0; i < whole.rank() && is_index(operation); ++i)
    if ((reduced >> i & 1) && whole.shape(i) != 1 && !repeats_along(i)) leaves_out = false;
  TensorView x = whole;
  int64_t repeats = 1;
  for (int i = 0; i < whole.rank() && leaves_out; ++i) {
    if (!repeats_along(i)) continue;
    x = x.slice(i, 0, 1);
    repeats *= whole.shape(i);
  }
  std::vector<int> kept, others;
  for (int i = 0; i < x.rank(); ++i) (reduced >> i & 1 ? others : kept).push_back(i);
  TensorView result = out;
  if (out.rank() == x.rank())  // sizes 1 in the place of the reduced axes
    for (auto i = others.rbegin(); i != others.rend(); ++i) result = result.squeeze(*i);
  // Axes in the order of memory merge, those that repeat elements in front. An index counts in
  // the order of x.
  const auto distance = [&](int axis) {
    return x.stride(axis) == 0 ? std::numeric_limits<int64_t>::max() : std::abs(x.stride(axis));
  };
  const auto further = [&](int a, int b) { return distance(a) > distance(b); };
  std::vector<int> order(kept.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = int(i);
  std::ranges::stable_sort(order,
                           [&](int a, int b) { return further(kept[size_t(a)], kept[size_t(b)]); });
  if (!is_index(operation)) std::ranges::stable_sort(others, further);
  std::vector<int> axes;
  for (const int i : order) axes.push_back(kept[size_t(i)]);
  axes.insert(axes.end(), others.begin(), others.end());
  return {operation, result.permute(order), x.permute(axes), int(kept.size()), correction, repeats};
}

}  // namespace tensorcraft::kernel::reduce
