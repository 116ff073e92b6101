// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/row_center/row_center.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/ops/row_center/params.h"

namespace tensorcraft {
namespace kernel::row_center {
namespace {

// A checked call: what comes after check() trusts it.
struct Problem {
  TensorView out, x;
  int64_t cols() const { return x.shape().back(); }
  int64_t rows() const { return cols() ? x.size() / cols() : 0; }
};

Problem check(const op::Call<RowCenterOptions>& call) {
  const TensorView& x = call.in();
  op::check_dtype("row_center", "x", x, {DType::float32, DType::float16, DType::bfloat16});
  if (x.rank() == 0)
    fail(ErrorKind::value, "row_center: x: expected rows, got one number; give it a shape");
  op::check_like("row_center", "out", call.out(), x.dtype(), x.shape());
  return {call.out(), x};
}

// The CPU: what users without a GPU run, and what every other variant is compared with.
void cpu(const Problem& q) {
  const host::Rows from(q.x), to(q.out);
  host::map_rows(from, to, [&](int64_t, const float* x, float* y) {
    float sum = 0;
    for (int64_t i = 0; i < from.length(); ++i) sum += x[i];
    const float mean = sum / float(from.length());
    for (int64_t i = 0; i < from.length(); ++i) y[i] = x[i] - mean;
  });
}
void reference(const Problem& q) {
  const host::Elements from(q.x), to(q.out);
  for (int64_t row = 0; row < q.rows(); ++row) {
    double sum = 0;
    for (int64_t i = 0; i < q.cols(); ++i) sum += from[row * q.cols() + i];
    for (int64_t i = row * q.cols(); i < (row + 1) * q.cols(); ++i)
      to.set(i, from[i] - sum / double(q.cols()));
  }
}
const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, rows over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

// The GPU, and the emulator: what the rungs read of a call, and the ladder with the best rung
// first.
op::RungCall<Params, op::NoGiven> rung_call(const Problem& q) {
  const int last = q.x.rank() - 1;
  return {Params{.x = q.x.data(),
                 .out = q.out.writable_data(),
                 .rows = q.rows(),
                 .cols = q.cols(),
                 .x_step = q.x.strides().back(),
                 .out_step = q.out.strides().back(),
                 .x_map = op::row_map(q.x, last),
                 .out_map = op::row_map(q.out, last)},
          {},
          {q.x.dtype()}};
}
op::Choice<Config> naive(const Params& p, const op::NoGiven&, const op::Gpu&) {
  return op::Start<Config>{{}, div_ceil<int64_t>(p.rows, Config().threads)};
}
constexpr op::Rung<Params, op::NoGiven, Config> kRungs[] = {
    {.name = "naive", .file = "00_naive.cuh", .idea = "one thread a row", .choose = naive},
};

// What help() says, and the parts above.
const op::Definition<Problem, RowCenterOptions> kDefinition{
    .name = "row_center",
    .group = "norms",
    .summary = "Subtracts the mean of each row.",
    .details =
        "A row lies along the last axis. x has any strides and dtype float32, float16 or "
        "bfloat16; sums are float32.",
    .inputs = {{"x", "the rows"}},
    .out_doc = "shape and dtype of x",
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .check = check,
    .ladder = op::make_ladder<rung_call, kRungs>("row_center", op::kThreads),
    .host = kHost};

}  // namespace
}  // namespace kernel::row_center

void row_center(const TensorView& out, const TensorView& x, const RowCenterOptions& options) {
  op::run(kernel::row_center::kDefinition, out, {x}, options);
}
Tensor row_center(const TensorView& x, const RowCenterOptions& options) {
  return std::move(op::allocate(kernel::row_center::kDefinition, {x}, options)[0]);
}

// What tensorcraft_add_operator() asks the folder for.
namespace ops {
op::OperatorList row_center() { return op::registered(kernel::row_center::kDefinition); }
}  // namespace ops

}  // namespace tensorcraft
