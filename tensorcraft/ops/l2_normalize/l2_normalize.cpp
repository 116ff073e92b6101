// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/l2_normalize/l2_normalize.hpp"

#include "tensorcraft/op/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/l2_normalize/l2_normalize_cpu.hpp"
#include "tensorcraft/ops/l2_normalize/l2_normalize_simt.hpp"
#include "tensorcraft/ops/l2_normalize/params.h"
#include "tensorcraft/ops/l2_normalize/plan.h"

#include <algorithm>
#include <limits>

namespace tensorcraft {
namespace kernel::l2_normalize {
namespace {

struct Problem {
  TensorView out, x;
  int axis;
  float eps;
  int64_t cols() const { return x.shape(axis); }
  int64_t rows() const { return cols() ? x.size() / cols() : 0; }
  int element_bytes() const { return int(dtype_bytes(x.dtype())); }
};

std::string config_text(const void* config) {
  const auto& c = *static_cast<const Config*>(config);
  return join("tensorcraft::kernel::l2_normalize::Config{.threads = ", c.threads,
              ", .group = ", c.group, ", .vector = ", c.vector, ", .slots = ", c.slots,
              ", .whole = ", c.whole, ", .nested = ", c.nested, "}");
}

constexpr std::string_view kParams =
    "tensorcraft::ParamsOf<tensorcraft::kernel::l2_normalize::Params, Config>";
const jit::Rung kNaive{"tensorcraft/ops/l2_normalize/00_naive.cuh",
                       "tensorcraft::kernel::l2_normalize::naive", kParams, config_text,
                       naive_instances};
const jit::Rung kBlock{"tensorcraft/ops/l2_normalize/01_block.cuh",
                       "tensorcraft::kernel::l2_normalize::block", kParams, config_text,
                       block_instances};
const jit::Rung kInRegisters{"tensorcraft/ops/l2_normalize/02_in_registers.cuh",
                             "tensorcraft::kernel::l2_normalize::in_registers", kParams,
                             config_text, in_registers_instances};

Params params(const Problem& q) {
  return {.x_step = q.x.stride(q.axis),
          .out_step = q.out.stride(q.axis),
          .x = q.x.data(),
          .out = q.out.data(),
          .rows = q.rows(),
          .cols = q.cols(),
          .eps = q.eps,
          .maps = row_maps(op::row_map(q.x, q.axis), op::row_map(q.out, q.axis))};
}

op::Plan plan_naive(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return op::make_plan(kNaive, {q.x.dtype()}, naive_launch(p), p);
}

op::Plan plan_block(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return op::make_plan(kBlock, {q.x.dtype()}, block_launch(p), p);
}

op::Plan plan_in_registers(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return op::make_plan(kInRegisters, {q.x.dtype()}, in_registers_launch(p, q.element_bytes()), p);
}

op::Verdict always(const Problem&, const DeviceInfo&) { return op::accept; }

op::Verdict accepts_in_registers(const Problem& q, const DeviceInfo&) {
  return op::decline(in_registers_problem(params(q)));
}

const op::Variant<Problem> kTable[] = {
    {"in_registers", "the row stays in registers: one read, one write, 16-byte accesses",
     DeviceType::cuda, accepts_in_registers, nullptr, plan_in_registers},
    {"block", "one block a row, sums through shuffles and shared memory", DeviceType::cuda, always,
     nullptr, plan_block},
    {"naive", "one thread a row", DeviceType::cuda, always, nullptr, plan_naive},
    {"cpu", "float, rows over all cores", DeviceType::cpu, always,
     [](const Problem& q) { cpu(q.out, q.x, q.axis, q.eps); }},
    {"reference", "double, obvious loops", DeviceType::cpu, always,
     [](const Problem& q) { reference(q.out, q.x, q.axis, q.eps); }},
};

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const L2NormalizeOptions&) {
  return {{"out", in[0].dtype(), in[0].shape()}};
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

op::Cost cost(const Problem& q) {
  return {.bytes = 2.0 * double(q.x.nbytes()), .flops = 3.0 * double(q.x.size())};
}

using Options = L2NormalizeOptions;
const op::Definition<Problem, Options> kDefinition{
    .name = "l2_normalize",
    .group = "normalise",
    .summary = "Scales the vectors along an axis to length 1.",
    .details =
        "out = x / max(sqrt(sum(x^2 over axis)), eps). x has any shape and strides, dtype float32, "
        "float16 or "
        "bfloat16; sums are float32. A vector with a NaN becomes NaN, one shorter than eps is "
        "divided by eps.",
    .aliases = {},
    .inputs = {{"x", "the vectors"}},
    .options = {op::option("axis", &Options::axis, "axis whose elements together get length 1"),
                op::option("eps", &Options::eps, "smallest length to divide by")},
    .out_doc = "shape and dtype of x",
    .extra_outputs = {},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .in_place = true,
    .infer = infer,
    .check = check,
    .cost = cost,
    .table = kTable};

}  // namespace
}  // namespace kernel::l2_normalize

void l2_normalize(const TensorView& out, const TensorView& x, const L2NormalizeOptions& options) {
  op::run(kernel::l2_normalize::kDefinition, out, {x}, options);
}

Tensor l2_normalize(const TensorView& x, const L2NormalizeOptions& options) {
  return std::move(op::allocate(kernel::l2_normalize::kDefinition, {x}, options)[0]);
}

op::OperatorList ops::l2_normalize() {
  static const auto& entry =
      *new op::OperatorOf(kernel::l2_normalize::kDefinition);  // leaked, as Kept is
  return {&entry};
}

}  // namespace tensorcraft
