// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/reduce/table.hpp"

#include "tensorcraft/ops/reduce/plan.h"
#include "tensorcraft/ops/reduce/reduce_cpu.hpp"
#include "tensorcraft/ops/reduce/reduce_simt.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <vector>

namespace tensorcraft::kernel::reduce {
namespace {

constexpr std::string_view kNames[] = {"sum",    "count", "mean", "max", "min",
                                       "argmax", "var",   "any",  "all"};
static_assert(std::size(kNames) == size_t(Operation::all) + 1);

std::string config_text(const void* config) {
  const auto& c = *static_cast<const Config*>(config);
  return join(
      "tensorcraft::kernel::reduce::Config{.operation = tensorcraft::kernel::reduce::Operation::",
      kNames[size_t(c.operation)], ", .threads = ", c.threads, ", .group = ", c.group,
      ", .vector = ", c.vector, ", .unroll = ", c.unroll, ", .nested = ", c.nested,
      ", .shared = ", c.shared, "}");
}

constexpr std::string_view kParams =
    "tensorcraft::ParamsOf<tensorcraft::kernel::reduce::Params, Config>";
const jit::Rung kNaive{"tensorcraft/ops/reduce/00_naive.cuh", "tensorcraft::kernel::reduce::naive",
                       kParams, config_text, naive_instances};
const jit::Rung kRow{"tensorcraft/ops/reduce/01_row.cuh", "tensorcraft::kernel::reduce::row",
                     kParams, config_text, row_instances};
const jit::Rung kColumn{"tensorcraft/ops/reduce/02_column.cuh",
                        "tensorcraft::kernel::reduce::column", kParams, config_text,
                        column_instances};

const jit::Rung kCombine{"tensorcraft/ops/reduce/combine.cuh",
                         "tensorcraft::kernel::reduce::combine", kParams, config_text,
                         combine_instances};

// Kept axes, merged where x and out both allow it.
void set_rows(Params& p, const Problem& q) {
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
  p.maps.set(Params::kX, x);
  p.maps.set(Params::kOut, out);
}

// Reduced axes: the last one after merging is a run.
void set_runs(Params& p, const Problem& q) {
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
  p.cols = p.step = p.segments = 1;
  if (map.axes == 0) return;
  const int last = --map.axes;
  p.cols = map.size[last];
  p.step = map.stride[last];
  map.size[last] = map.stride[last] = 0;
  for (int i = 0; i < last; ++i) p.segments *= map.size[i];
  p.maps.set(Params::kSegments, map);
}

// any and all look at bits alone, and a bool may hold more than 0 and 1.
DType kernel_dtype(const Problem& q) {
  const DType dtype = q.x.dtype();
  const bool is_truth = q.operation == Operation::any || q.operation == Operation::all;
  return dtype == DType::bool_ || (is_truth && dtype == DType::int8) ? DType::uint8 : dtype;
}

int bytes_of(const Problem& q) { return int(dtype_bytes(q.x.dtype())); }

op::Plan make_plan(const jit::Rung& rung, const Problem& q, const Planned& planned) {
  op::Plan plan = op::make_plan(rung, {kernel_dtype(q)}, planned.launch, planned.params);
  if (planned.combine.blocks == 0) return plan;
  const op::Plan second =
      op::make_plan(kCombine, {kernel_dtype(q)}, planned.combine, planned.params);
  plan.add(second.steps()[0]);
  plan.workspace_bytes = planned.workspace_bytes;
  plan.steps()[0].workspace_at = offsetof(Params, workspace);
  return plan;
}

op::Verdict accepts_naive(const Problem& q, const DeviceInfo&) {
  return op::decline(naive_problem(params(q)));
}
op::Plan plan_naive(const Problem& q, const DeviceInfo&) {
  return make_plan(kNaive, q, naive_plan(params(q), q.operation));
}

op::Verdict accepts_row(const Problem& q, const DeviceInfo&) {
  return op::decline(row_problem(params(q)));
}
op::Verdict suits_row(const Problem& q, const DeviceInfo&) {
  return op::decline(row_doubt(params(q)));
}
op::Plan plan_row(const Problem& q, const DeviceInfo& device) {
  return make_plan(kRow, q, row_plan(params(q), q.operation, bytes_of(q), device.num_sms));
}

op::Verdict accepts_column(const Problem& q, const DeviceInfo&) {
  return op::decline(column_problem(params(q)));
}
op::Verdict suits_column(const Problem& q, const DeviceInfo&) {
  return op::decline(column_doubt(params(q)));
}
op::Plan plan_column(const Problem& q, const DeviceInfo& device) {
  return make_plan(kColumn, q, column_plan(params(q), q.operation, bytes_of(q), device.num_sms));
}

op::Verdict always(const Problem&, const DeviceInfo&) { return op::accept; }

const op::Variant<Problem> kTable[] = {
    {.name = "column",
     .idea = "neighbouring outputs a thread, 16-byte accesses, blocks share the lines",
     .device = DeviceType::cuda,
     .accepts = accepts_column,
     .plan = plan_column,
     .suits = suits_column},
    {.name = "row",
     .idea = "a few lanes, a warp, a block or several a row, 16-byte accesses",
     .device = DeviceType::cuda,
     .accepts = accepts_row,
     .plan = plan_row,
     .suits = suits_row},
    {.name = "naive",
     .idea = "one thread an output, any strides",
     .device = DeviceType::cuda,
     .accepts = accepts_naive,
     .plan = plan_naive},
    {.name = "cpu",
     .idea = "float, outputs over all cores",
     .device = DeviceType::cpu,
     .accepts = always,
     .run = cpu},
    {.name = "reference",
     .idea = "double, obvious loops",
     .device = DeviceType::cpu,
     .accepts = always,
     .run = reference},
};

}  // namespace

Params params(const Problem& q) {
  Params p{.x = q.x.data(), .out = q.out.data(), .rows = q.outputs()};
  set_rows(p, q);
  set_runs(p, q);
  p.repeats = q.repeats;
  p.count = float(q.length());
  p.divisor = float(q.divisor());
  return p;
}

Problem make_problem(Operation operation, const TensorView& out, const TensorView& whole,
                     unsigned reduced, float correction) {
  // Along a reduced axis without a stride all elements are one. An index of argmax counts them, but
  // is 0 where there is no other axis.
  const auto repeats_along = [&](int axis) {
    return (reduced >> axis & 1) && whole.stride(axis) == 0 && whole.shape(axis) > 1;
  };
  bool leaves_out = true;
  for (int i = 0; i < whole.rank() && operation == Operation::argmax; ++i)
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
  // Axes in the order of memory merge, those that repeat elements in front. An index of argmax
  // counts in the order of x.
  const auto distance = [&](int axis) {
    return x.stride(axis) == 0 ? std::numeric_limits<int64_t>::max() : std::abs(x.stride(axis));
  };
  const auto further = [&](int a, int b) { return distance(a) > distance(b); };
  std::vector<int> order(kept.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = int(i);
  std::ranges::stable_sort(order,
                           [&](int a, int b) { return further(kept[size_t(a)], kept[size_t(b)]); });
  if (operation != Operation::argmax) std::ranges::stable_sort(others, further);
  std::vector<int> axes;
  for (const int i : order) axes.push_back(kept[size_t(i)]);
  axes.insert(axes.end(), others.begin(), others.end());
  return {operation, result.permute(order), x.permute(axes), int(kept.size()), correction, repeats};
}

std::span<const op::Variant<Problem>> table() { return kTable; }

op::Cost cost(const Problem& q) {
  double distinct = double(dtype_bytes(q.x.dtype()));
  for (int i = 0; i < q.x.rank(); ++i)
    if (q.x.stride(i) != 0) distinct *= double(q.x.shape(i));
  const double flops = q.operation == Operation::var ? 3 : 1;
  return {.bytes = distinct + double(q.out.nbytes()), .flops = flops * double(q.x.size())};
}

}  // namespace tensorcraft::kernel::reduce
