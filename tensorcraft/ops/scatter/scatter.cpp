// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/scatter/scatter.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/moved_as.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/scatter/plan.h"
#include "tensorcraft/ops/scatter/problem.hpp"

namespace tensorcraft {

template <>
struct op::EnumNames<ScatterReduction> {
  static constexpr std::array<std::string_view, 5> names = {"none", "add", "multiply", "max",
                                                            "min"};
};

namespace kernel::scatter {

Params params(const Problem& q) {
  Params p{.x = q.x.data(),
           .indices = q.indices.data(),
           .updates = q.updates.data(),
           .out = q.out.writable_data(),
           .lines = {},
           .size = q.x.shape(q.axis),
           .num_updates = q.indices.shape(q.axis),
           .out_step = q.out.stride(q.axis),
           .x_step = q.x.stride(q.axis),
           .index_step = q.indices.stride(q.axis),
           .update_step = q.updates.stride(q.axis),
           .operation = q.operation,
           .index_bytes = int32_t(dtype_bytes(q.indices.dtype()))};
  for (int i = 0; i < q.x.rank(); ++i)
    if (i != q.axis)
      add_axis(p.lines, q.x.shape(i), q.out.stride(i), q.x.stride(i), q.indices.stride(i),
               q.updates.stride(i));
  finish(p);
  return p;
}

namespace {

constexpr ConfigField kFields[] = {{"threads"}, {"entries"}, {"vector"}, {"combines"}, {"wide"}};

op::RungCall<Params, Given> rung_call(const Problem& q) {
  const Given given{int(dtype_bytes(q.x.dtype())), true};
  const bool moves = q.operation == Operation::none;
  return {params(q), given, {moves ? op::moved_as(given.element_bytes) : q.x.dtype()}};
}

// The claims of panels lie in a workspace.
void complete(op::Plan& plan, std::string_view rung, const Problem&, const DeviceInfo&) {
  if (rung != "panels") return;
  plan.workspace_bytes = plan.workspace_zeroed =
      workspace_bytes(plan.params_as<Params>(plan.first()));
  plan.first().workspace_at = offsetof(Params, workspace);
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "lines over all cores", .run = cpu},
    {.name = "reference", .idea = "obvious loops, sums in double", .run = reference},
};

int checked_axis(const TensorView& x, const ScatterOptions& o) {
  if (x.rank() == 0) fail(ErrorKind::axis, "scatter: x: expected at least 1 dimension");
  return normalize_axis(o.axis, x.rank(), "scatter");
}

// The updates in the shape of the indices.
TensorView broadcast(const TensorView& updates, const Dims& shape) {
  bool fits = updates.rank() <= shape.rank();
  for (int i = 1; fits && i <= updates.rank(); ++i) {
    const int64_t size = updates.shape(updates.rank() - i);
    fits = size == 1 || size == shape[shape.rank() - i];
  }
  if (!fits)
    fail(ErrorKind::value, "scatter: updates: expected the shape of indices, ", shape,
         ", or one that broadcasts to it, got ", updates.shape());
  return updates.broadcast_to(shape);
}

Problem check(const op::Call<ScatterOptions>& call) {
  const TensorView &x = call.in(0), &indices = call.in(1), &updates = call.in(2);
  const int axis = checked_axis(x, call.options);
  op::check_dtype("scatter", "indices", indices, {DType::int32, DType::int64});
  Dims wanted = x.shape();
  if (indices.rank() == x.rank()) wanted[axis] = indices.shape(axis);
  op::check_like("scatter", "indices", indices, indices.dtype(), wanted);
  if (updates.dtype() != x.dtype())
    fail(ErrorKind::type, "scatter: updates: expected the dtype of x, ", x.dtype(), ", but got ",
         updates.dtype(), "; convert it with astype");
  if (call.options.reduction != ScatterReduction::none)
    op::check_dtype("scatter", "x with a reduction", x,
                    {DType::float32, DType::float16, DType::bfloat16, DType::int32, DType::int64});
  op::check_like("scatter", "out", call.out(), x.dtype(), x.shape());
  if (x.shape(axis) == 0 && indices.size() > 0)
    fail(ErrorKind::index, "scatter: indices: axis ", axis, " of x, shape ", x.shape(),
         ", must have at least one place for an index to name");
  for (const auto& [name, in] : {std::pair("updates", &updates), std::pair("indices", &indices)})
    op::check_apart("scatter", "out", call.out(), name, *in,
                    "it must be x or have memory of its own");
  return {call.out(), x,
          indices,    broadcast(updates, indices.shape()),
          axis,       Operation(int(call.options.reduction))};
}

op::Cost cost(const Problem& q) {
  return {.bytes = double(q.x.nbytes()) + double(q.out.nbytes()) + double(q.indices.nbytes()) +
                   double(q.updates.nbytes())};
}

const op::Definition<Problem, ScatterOptions> kScatter{
    .name = "scatter",
    .group = "data movement",
    .summary = "A copy of an array with updates at the places that indices name, along one axis.",
    .details =
        "out[..., indices[..., j, ...], ...] = updates[..., j, ...], the rest is x: what "
        "take_along_axis reads, scatter writes. With out=x only the places named are written. "
        "Where several updates name one place the last one along the axis stays; with a reduction "
        "they and what x has there are combined in their order, floats in float32 and rounded "
        "once, integers wrapping (float32, float16, bfloat16, int32, int64). Results repeat to the "
        "bit. An index is in [-n, n) for an axis of n elements. Another is an IndexError on the "
        "CPU, before anything is written; a GPU leaves its update out.",
    .inputs = {{"x", "any dtype, at least 1 dimension"},
               {"indices", op::takes(op::kIndexTypes, "%, shape of x but along the axis")},
               {"updates", "dtype of x, shape of indices or one that broadcasts to it"}},
    .options = {op::positional(op::option("axis", &ScatterOptions::axis, "which axis of x")),
                op::option("reduction", &ScatterOptions::reduction,
                           "how updates and what x has become one; None: the update stays")},
    .out_doc = "shape and dtype of x",
    .dtypes = op::moved_dtypes(),
    .in_place = true,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs, complete>("scatter", kFields),
    .host = kHost};

}  // namespace
}  // namespace kernel::scatter

void scatter(const TensorView& out, const TensorView& x, const TensorView& indices,
             const TensorView& updates, const ScatterOptions& options) {
  op::run(kernel::scatter::kScatter, out, {x, indices, updates}, options);
}
Tensor scatter(const TensorView& x, const TensorView& indices, const TensorView& updates,
               const ScatterOptions& options) {
  return std::move(op::allocate(kernel::scatter::kScatter, {x, indices, updates}, options)[0]);
}

op::OperatorList ops::scatter() { return op::registered(kernel::scatter::kScatter); }

}  // namespace tensorcraft
