// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/l2_normalize/l2_normalize.hpp"

#include "tensorcraft/device/scaled_row.h"
#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/ops/l2_normalize/plan.h"
#include "tensorcraft/ops/registry.hpp"

#include <cmath>

namespace tensorcraft {
namespace kernel::l2_normalize {
namespace {

struct Problem {  // a checked call
  TensorView out, x;
  int axis;
  float eps;
};

void cpu(const Problem& q) {
  const int64_t n = q.x.shape(q.axis);
  host::map_rows(
      host::Rows(q.x, q.axis), host::Rows(q.out, q.axis), [&](int64_t, const float* x, float* y) {
        float length = std::max(std::sqrt(host::row_sum_of_squares(x, 0, n)), q.eps), scale = 1;
        if (!is_ordinary_rstd(1 / length)) {
          scale = scale_of_row(host::row_max_magnitude(x, n));
          length = std::max(std::sqrt(host::row_sum_of_scaled_squares(x, scale, n)), q.eps * scale);
        }
        for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale / length;
      });
}

void reference(const Problem& q) {
  const host::Elements to(q.out.transpose(q.axis, -1)), from(q.x.transpose(q.axis, -1));
  const int64_t cols = q.x.shape(q.axis);
  for (int64_t first = 0; first < q.x.size(); first += cols) {
    double sum = 0;
    for (int64_t i = first; i < first + cols; ++i) sum += from[i] * from[i];
    const double length = std::max(std::sqrt(sum), double(q.eps));
    for (int64_t i = first; i < first + cols; ++i) to.set(i, from[i] / length);
  }
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, rows over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

constexpr ConfigField kFields[] = {{"threads"}, {"group"},   {"vector"}, {"slots"},
                                   {"whole"},   {"cluster"}, {"nested"}};

op::RungCall<CallParams, Given> rung_call(const Problem& q) {
  const int64_t cols = q.x.shape(q.axis);
  return {with_maps(Params{.x_step = q.x.stride(q.axis),
                           .out_step = q.out.stride(q.axis),
                           .x = q.x.data(),
                           .out = q.out.writable_data(),
                           .rows = cols ? q.x.size() / cols : 0,
                           .cols = cols,
                           .eps = q.eps},
                    op::row_map(q.x, q.axis), op::row_map(q.out, q.axis)),
          {.element_bytes = int(dtype_bytes(q.x.dtype()))},
          {q.x.dtype()}};
}

Problem check(const op::Call<L2NormalizeOptions>& call) {
  const TensorView& x = call.in();
  op::check_dtype("l2_normalize", "x", x, {DType::float32, DType::float16, DType::bfloat16});
  op::check_like("l2_normalize", "out", call.out(), x.dtype(), x.shape());
  if (!(call.options.eps >= 0))
    fail(ErrorKind::value, "l2_normalize: eps must be at least 0, got ", call.options.eps);
  if (x.rank() == 0)  // one number is one vector
    return {call.out().expand_dims(0), x.expand_dims(0), 0, call.options.eps};
  const int axis = normalize_axis(call.options.axis, x.rank(), "l2_normalize");
  return {call.out(), x, axis, call.options.eps};
}

using Options = L2NormalizeOptions;
const op::Definition<Problem, Options> kDefinition{
    .name = "l2_normalize",
    .group = "normalise",
    .summary = "Scales the vectors along an axis to length 1.",
    .details =
        "out = x / max(sqrt(sum(x^2 over axis)), eps). x has any shape and strides, dtype float32, "
        "float16 or bfloat16; sums are float32. A vector with a NaN becomes NaN, one shorter than "
        "eps is divided by eps.",
    .inputs = {{"x", "the vectors"}},
    .options = {op::positional(op::option("axis", &Options::axis,
                                          "axis whose elements together get length 1")),
                op::option("eps", &Options::eps, "smallest length to divide by")},
    .out_doc = "shape and dtype of x",
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .in_place = true,
    .check = check,
    .ladder = op::make_ladder<rung_call, kRungs>("l2_normalize", kFields),
    .host = kHost};

}  // namespace
}  // namespace kernel::l2_normalize

void l2_normalize(const TensorView& out, const TensorView& x, const L2NormalizeOptions& options) {
  op::run(kernel::l2_normalize::kDefinition, out, {x}, options);
}

Tensor l2_normalize(const TensorView& x, const L2NormalizeOptions& options) {
  return std::move(op::allocate(kernel::l2_normalize::kDefinition, {x}, options)[0]);
}

op::OperatorList ops::l2_normalize() { return op::registered(kernel::l2_normalize::kDefinition); }

}  // namespace tensorcraft
