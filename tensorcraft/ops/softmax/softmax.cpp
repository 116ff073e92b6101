// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/softmax/softmax.hpp"

#include "tensorcraft/op/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/rows.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/softmax/params.h"
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
  bool has_unit_step() const {
    return cols() <= 1 || (x.stride(axis) == 1 && out.stride(axis) == 1);
  }
};

std::string config_text(const void* config) {
  const auto& c = *static_cast<const Config*>(config);
  return join("tensorcraft::kernel::softmax::Config{.threads = ", c.threads, ", .group = ", c.group,
              ", .vector = ", c.vector, ", .slots = ", c.slots, ", .whole = ", c.whole,
              ", .nested = ", c.nested, "}");
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

constexpr int64_t kMaxBlocks = (int64_t(1) << 31) - 1;
constexpr int kMaxSlots = 8;      // of a block; up to 64 values a thread
constexpr int kMaxWarpSlots = 4;  // a longer row has work for several warps

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

// Elements of an access: 16 bytes where every row of both tensors starts at such a boundary.
int vector_of(const Problem& q) {
  const bool aligned = op::rows_aligned(q.x, op::row_map(q.x, q.axis), 16) &&
                       op::rows_aligned(q.out, op::row_map(q.out, q.axis), 16);
  return aligned ? int(16 / dtype_bytes(q.x.dtype())) : 1;
}

// `group` threads hold a row in as many accesses of each as it takes.
Config row_config(const Problem& q, int threads, int group, int vector) {
  const int64_t slots = std::min<int64_t>(div_ceil(q.cols(), group * vector), kMaxSlots + 1);
  return {.threads = threads,
          .group = group,
          .vector = vector,
          .slots = int(slots),
          .whole = slots * group * vector == q.cols()};
}

Config in_registers_config(const Problem& q) {
  const int vector = vector_of(q);
  // Half a warp where that leaves no thread without elements and a warp would.
  const Config half = row_config(q, 128, 16, vector), warp = row_config(q, 128, 32, vector);
  if (half.whole && !warp.whole && half.slots <= kMaxWarpSlots) return half;
  return warp.slots <= kMaxWarpSlots ? warp : row_config(q, 256, 256, vector);
}

op::Plan plan(const jit::Rung& rung, const Problem& q, Config config, int64_t blocks) {
  config.nested = op::row_map(q.x, q.axis).axes > 1 || op::row_map(q.out, q.axis).axes > 1;
  return op::make_plan(
      rung, {q.x.dtype()}, config,
      {.grid = {uint32_t(std::min(blocks, kMaxBlocks))}, .block = {uint32_t(config.threads)}},
      params(q));
}

op::Plan plan_naive(const Problem& q, const DeviceInfo&) {
  return plan(kNaive, q, {.threads = 128, .group = 1}, div_ceil(q.rows(), 128));
}

op::Plan plan_block(const Problem& q, const DeviceInfo&) {
  const int threads = q.cols() <= 1024 ? 128 : 256;
  return plan(kBlock, q, {.threads = threads, .group = threads}, q.rows());
}

op::Plan plan_online(const Problem& q, const DeviceInfo&) {
  return plan(kOnline, q, {.threads = 256, .group = 256, .vector = vector_of(q)}, q.rows());
}

op::Plan plan_in_registers(const Problem& q, const DeviceInfo&) {
  const Config config = in_registers_config(q);
  return plan(kInRegisters, q, config, div_ceil(q.rows(), config.threads / config.group));
}

op::Verdict always(const Problem&, const DeviceInfo&) { return op::accept; }

op::Verdict accepts_naive(const Problem& q, const DeviceInfo&) {
  if (div_ceil(q.rows(), 128) > kMaxBlocks) return op::decline("needs fewer than 2^38 rows");
  return op::accept;
}

op::Verdict accepts_online(const Problem& q, const DeviceInfo&) {
  if (!q.has_unit_step()) return op::decline("elements along the axis must be neighbours");
  return op::accept;
}

op::Verdict accepts_in_registers(const Problem& q, const DeviceInfo&) {
  if (!q.has_unit_step()) return op::decline("elements along the axis must be neighbours");
  const Config config = in_registers_config(q);
  if (config.slots > kMaxSlots) return op::decline("a row must fit the registers of 256 threads");
  if (div_ceil(q.rows(), config.threads / config.group) > kMaxBlocks)
    return op::decline("needs fewer than 2^31 rows");
  return op::accept;
}

const op::Variant<Problem> kTable[] = {
    {"in_registers", "a row in the registers of a warp or a block: one read, one write",
     DeviceType::cuda, accepts_in_registers, nullptr, plan_in_registers},
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
  static const op::OperatorOf entry(kernel::softmax::kDefinition);
  return {&entry};
}

}  // namespace tensorcraft
