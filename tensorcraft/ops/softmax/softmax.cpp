// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/softmax/softmax.hpp"

#include "tensorcraft/op/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/rows.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/softmax/plan.h"
#include "tensorcraft/ops/softmax/softmax_cpu.hpp"
#include "tensorcraft/ops/softmax/softmax_simt.hpp"

#include <algorithm>

namespace tensorcraft {
namespace kernel::softmax {
namespace {

struct Problem {
  TensorView out, x;
  int axis;
  int64_t cols() const { return x.shape(axis); }
  int64_t rows() const { return cols() ? x.size() / cols() : 0; }
  int element_bytes() const { return int(dtype_bytes(x.dtype())); }
};

std::string config_text(const void* config) {
  const auto& c = *static_cast<const Config*>(config);
  return join("tensorcraft::kernel::softmax::Config{.threads = ", c.threads, ", .group = ", c.group,
              ", .vector = ", c.vector, ", .slots = ", c.slots, ", .whole = ", c.whole,
              ", .nested = ", c.nested, ", .cluster = ", c.cluster, "}");
}

constexpr std::string_view kParams = "tensorcraft::kernel::softmax::Params";
const jit::Rung kNaive{"tensorcraft/ops/softmax/00_naive.cuh",
                       "tensorcraft::kernel::softmax::naive", kParams, config_text,
                       naive_instances};
const jit::Rung kBlock{"tensorcraft/ops/softmax/01_block.cuh",
                       "tensorcraft::kernel::softmax::block", kParams, config_text,
                       block_instances};
const jit::Rung kOnline{"tensorcraft/ops/softmax/02_online.cuh",
                        "tensorcraft::kernel::softmax::online", kParams, config_text,
                        online_instances};
const jit::Rung kInRegisters{"tensorcraft/ops/softmax/03_in_registers.cuh",
                             "tensorcraft::kernel::softmax::in_registers", kParams, config_text,
                             in_registers_instances};
const jit::Rung kCluster{"tensorcraft/ops/softmax/04_cluster.cuh",
                         "tensorcraft::kernel::softmax::cluster", kParams, config_text,
                         cluster_instances};

Params params(const Problem& q) {
  return {.x = q.x.data(),
          .out = q.out.data(),
          .rows = q.rows(),
          .cols = q.cols(),
          .x_step = q.x.stride(q.axis),
          .out_step = q.out.stride(q.axis),
          .x_rows = op::row_map(q.x, q.axis),
          .out_rows = op::row_map(q.out, q.axis)};
}

op::Plan plan_naive(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return op::make_plan(kNaive, {q.x.dtype()}, naive_launch(p), p);
}

op::Plan plan_block(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return op::make_plan(kBlock, {q.x.dtype()}, block_launch(p), p);
}

op::Plan plan_online(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return op::make_plan(kOnline, {q.x.dtype()}, online_launch(p, q.element_bytes()), p);
}

op::Plan plan_in_registers(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return op::make_plan(kInRegisters, {q.x.dtype()}, in_registers_launch(p, q.element_bytes()), p);
}

op::Plan plan_cluster(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return op::make_plan(kCluster, {q.x.dtype()}, cluster_launch(p, q.element_bytes()), p);
}

op::Verdict always(const Problem&, const DeviceInfo&) { return op::accept; }

op::Verdict accepts_naive(const Problem& q, const DeviceInfo&) {
  return op::decline(naive_problem(params(q)));
}

op::Verdict accepts_online(const Problem& q, const DeviceInfo&) {
  return op::decline(online_problem(params(q)));
}

op::Verdict accepts_in_registers(const Problem& q, const DeviceInfo&) {
  return op::decline(in_registers_problem(params(q), q.element_bytes()));
}

op::Verdict accepts_cluster(const Problem& q, const DeviceInfo& device) {
  return op::decline(
      cluster_problem(params(q), q.element_bytes(), device.compute_capability >= 90));
}

const op::Variant<Problem> kTable[] = {
    {"in_registers", "a row in the registers of a warp or a block: one read, one write",
     DeviceType::cuda, accepts_in_registers, nullptr, plan_in_registers},
    {"cluster", "a row in the registers of a cluster's blocks: one read, one write",
     DeviceType::cuda, accepts_cluster, nullptr, plan_cluster},
    {"online", "maximum and sum in one walk, 16-byte accesses: two reads, one write",
     DeviceType::cuda, accepts_online, nullptr, plan_online},
    {"block", "one block a row, maximum and sum through shuffles and shared memory",
     DeviceType::cuda, always, nullptr, plan_block},
    {"naive", "one thread a row", DeviceType::cuda, accepts_naive, nullptr, plan_naive},
    {"cpu", "float, vector exponentials, rows over all cores", DeviceType::cpu, always,
     [](const Problem& q) { cpu(q.out, q.x, q.axis); }},
    {"reference", "double, obvious loops", DeviceType::cpu, always,
     [](const Problem& q) { reference(q.out, q.x, q.axis); }},
};

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const SoftmaxOptions&) {
  return {{"out", in[0].dtype(), in[0].shape()}};
}

Problem check(const op::Call<SoftmaxOptions>& call) {
  const TensorView& x = call.in();
  op::check_dtype("softmax", "x", x, {DType::float32, DType::float16, DType::bfloat16});
  op::check_like("softmax", "out", call.out(), x.dtype(), x.shape());
  return {call.out(), x, normalize_axis(call.options.axis, x.rank(), "softmax")};
}

op::Cost cost(const Problem& q) {
  return {.bytes = 2.0 * double(q.x.nbytes()), .flops = 4.0 * double(q.x.size())};
}

using Options = SoftmaxOptions;
const op::Definition<Problem, Options> kDefinition{
    .name = "softmax",
    .group = "normalise",
    .summary = "Exponentials along an axis, scaled to sum to 1.",
    .details =
        "out = exp(x - max) / sum(exp(x - max)) over the axis. x has any shape and strides, dtype "
        "float32, float16 or bfloat16; computed in float32. -inf gives 0. A row with a NaN or "
        "+inf, or of nothing but -inf, becomes NaN.",
    .aliases = {},
    .inputs = {{"x", "the logits"}},
    .options = {op::option("axis", &Options::axis, "axis whose elements together sum to 1")},
    .out_doc = "shape and dtype of x",
    .extra_outputs = {},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .in_place = true,
    .infer = infer,
    .check = check,
    .cost = cost,
    .table = kTable};

}  // namespace
}  // namespace kernel::softmax

void softmax(const TensorView& out, const TensorView& x, const SoftmaxOptions& options) {
  op::run(kernel::softmax::kDefinition, out, {x}, options);
}

Tensor softmax(const TensorView& x, const SoftmaxOptions& options) {
  return std::move(op::allocate(kernel::softmax::kDefinition, {x}, options)[0]);
}

op::OperatorList ops::softmax() {
  static const auto& entry =
      *new op::OperatorOf(kernel::softmax::kDefinition);  // leaked, as Kept is
  return {&entry};
}

}  // namespace tensorcraft
