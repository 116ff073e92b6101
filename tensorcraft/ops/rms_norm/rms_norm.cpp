// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/rms_norm/rms_norm.hpp"

#include "tensorcraft/op/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/rows.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/rms_norm/rms_norm_cpu.hpp"
#include "tensorcraft/ops/rms_norm/params.h"
#include "tensorcraft/ops/rms_norm/rms_norm_simt.hpp"

#include <algorithm>

namespace tensorcraft {
namespace kernel::rms_norm {
namespace {

constexpr std::string_view kName = "rms_norm";
constexpr int64_t kMaxBlocks = (int64_t(1) << 31) - 1;

std::string config_text(const void* config) {
  const auto& c = *static_cast<const Config*>(config);
  return join("tensorcraft::kernel::rms_norm::Config{.threads = ", c.threads,
              ", .group = ", c.group, ", .vector = ", c.vector, ", .slots = ", c.slots,
              ", .has_residual = ", c.has_residual, ", .has_weight = ", c.has_weight,
              ", .whole = ", c.whole, ", .nested = ", c.nested, "}");
}

constexpr std::string_view kParams = "tensorcraft::kernel::rms_norm::Params";
const jit::Rung kNaive{"tensorcraft/ops/rms_norm/00_naive.cuh",
                       "tensorcraft::kernel::rms_norm::naive", kParams, config_text,
                       naive_instances};
const jit::Rung kBlock{"tensorcraft/ops/rms_norm/01_block.cuh",
                       "tensorcraft::kernel::rms_norm::block", kParams, config_text,
                       block_instances};
const jit::Rung kVectorized{"tensorcraft/ops/rms_norm/02_vectorized.cuh",
                            "tensorcraft::kernel::rms_norm::vectorized", kParams, config_text,
                            vectorized_instances};
const jit::Rung kInRegisters{"tensorcraft/ops/rms_norm/03_in_registers.cuh",
                             "tensorcraft::kernel::rms_norm::in_registers", kParams, config_text,
                             in_registers_instances};

// The tensors of a call as rows. Weight has one row.
struct Tensors {
  op::LastAxisRows x, out, residual, residual_out, weight;
  explicit Tensors(const Problem& q)
      : x(q.x), out(q.out), residual(q.residual), residual_out(q.residual_out), weight(q.weight) {}
  bool all_unit() const {
    return x.is_unit && out.is_unit && residual.is_unit && residual_out.is_unit;
  }
  bool all_aligned() const {
    return x.is_aligned && out.is_aligned && residual.is_aligned && residual_out.is_aligned &&
           weight.is_aligned;
  }
  bool any_nested() const {
    return x.is_nested() || out.is_nested() || residual.is_nested() || residual_out.is_nested();
  }
};

Params params(const Problem& q) {
  const Tensors t(q);
  return {.x = t.x.data,
          .residual = t.residual.data,
          .weight = t.weight.data,
          .out = t.out.data,
          .residual_out = t.residual_out.data,
          .rows = q.rows(),
          .cols = q.cols(),
          .x_step = t.x.step,
          .residual_step = t.residual.step,
          .out_step = t.out.step,
          .residual_out_step = t.residual_out.step,
          .x_rows = t.x.map,
          .residual_rows = t.residual.map,
          .out_rows = t.out.map,
          .residual_out_rows = t.residual_out.map,
          .inverse_cols = 1.0f / float(q.cols()),
          .eps = q.eps};
}

bool has_unit_steps(const Problem& q) { return Tensors(q).all_unit(); }

// Elements of a 16-byte access, or 1 where a row cannot be divided into such accesses.
int vector_of(const Problem& q) {
  const int vector = int(16 / dtype_bytes(q.x.dtype()));
  return q.cols() % vector == 0 && Tensors(q).all_aligned() ? vector : 1;
}

op::Plan plan(const jit::Rung& rung, const Problem& q, Config config, int64_t blocks,
              int min_blocks = 1) {
  config.has_residual = q.residual.has_value();
  config.has_weight = q.weight.has_value();
  config.nested = Tensors(q).any_nested();
  const DType weight = q.weight ? q.weight->dtype() : q.x.dtype();
  return op::make_plan(rung, {q.x.dtype(), weight}, config,
                       {.grid = {uint32_t(blocks)}, .block = {uint32_t(config.threads)}}, params(q),
                       min_blocks);
}

op::Plan plan_naive(const Problem& q, const DeviceInfo&) {
  return plan(kNaive, q, {.threads = 128, .group = 1}, div_ceil(q.rows(), int64_t(128)));
}

// A block walks over rows where there are more of them than a grid has blocks.
op::Plan plan_block(const Problem& q, const DeviceInfo&) {
  const int threads = q.cols() <= 1024 ? 128 : 256;
  return plan(kBlock, q, {.threads = threads, .group = threads}, std::min(q.rows(), kMaxBlocks));
}

op::Plan plan_vectorized(const Problem& q, const DeviceInfo&) {
  const int threads = q.cols() <= 1024 ? 128 : 256;
  return plan(kVectorized, q, {.threads = threads, .group = threads, .vector = vector_of(q)},
              std::min(q.rows(), kMaxBlocks));
}

op::Plan plan_in_registers(const Problem& q, const DeviceInfo&) {
  const int vector = vector_of(q);
  const auto [threads, group, slots] = op::split_rows(q.cols(), vector);
  // 768 threads of 32 elements on a multiprocessor keep enough bytes in flight.
  const int min_blocks = slots * vector <= 32 ? 768 / threads : 1;
  return plan(kInRegisters, q,
              {.threads = threads,
               .group = group,
               .vector = vector,
               .slots = slots,
               .whole = q.cols() == int64_t(group) * vector * slots},
              div_ceil(q.rows(), int64_t(threads / group)), min_blocks);
}

op::Verdict always(const Problem&, const DeviceInfo&) { return op::accept; }

op::Verdict accepts_vectorized(const Problem& q, const DeviceInfo&) {
  if (!has_unit_steps(q)) return op::decline("the last axis must have stride 1");
  if (vector_of(q) == 1)
    return op::decline("rows must start at 16-byte boundaries and be a multiple of 16 bytes long");
  return op::accept;
}

op::Verdict accepts_in_registers(const Problem& q, const DeviceInfo&) {
  if (!has_unit_steps(q)) return op::decline("the last axis must have stride 1");
  if (q.cols() > op::kMaxRegisterRow)
    return op::decline("rows of more than 16384 elements do not fit the registers");
  if (q.rows() > kMaxBlocks) return op::decline("more than 2^31 - 1 rows");
  return op::accept;
}

const op::Variant<Problem> kTable[] = {
    {"in_registers", "the row stays in registers: one read, one write, 16-byte accesses",
     DeviceType::cuda, accepts_in_registers, nullptr, plan_in_registers},
    {"vectorized", "16-byte accesses, one read for the sum and a second for the result",
     DeviceType::cuda, accepts_vectorized, nullptr, plan_vectorized},
    {"block", "one block a row, sums through shuffles and shared memory", DeviceType::cuda, always,
     nullptr, plan_block},
    {"naive", "one thread a row", DeviceType::cuda, always, nullptr, plan_naive},
    {"cpu", "float, rows over all cores", DeviceType::cpu, always, cpu},
    {"reference", "double, obvious loops", DeviceType::cpu, always, reference},
};

void check_x(const TensorView& x) {
  op::check_dtype(kName, "x", x, {DType::float32, DType::float16, DType::bfloat16});
  if (x.rank() == 0)
    fail(ErrorKind::value, kName, ": x: expected at least 1 dimension, got shape ", x.shape());
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const RmsNormOptions& o) {
  check_x(in[0]);
  std::vector<op::OutputSpec> specs{{"out", in[0].dtype(), in[0].shape()}};
  if (o.residual) specs.push_back({"residual_out", in[0].dtype(), in[0].shape()});
  return specs;
}

void check_weight(const op::Call<RmsNormOptions>& call) {
  const TensorView& x = call.in();
  const auto& weight = call.options.weight;
  if (!weight) return;
  SymbolicDType dtype({x.dtype()});
  if (x.dtype() != DType::float32) dtype.set_options({x.dtype(), DType::float32});
  SymbolicSize cols("cols");
  cols.set_value(x.shape(x.rank() - 1));
  TensorMatcher({cols}).with_dtype(dtype).verify(*weight, kName, "weight");
  for (const auto& out : {std::optional(call.out()), call.options.residual_out})
    if (out && may_overlap(*out, *weight))
      fail(ErrorKind::value, kName, ": an output overlaps the memory of weight; give it memory of ",
           "its own");
}

Problem check(const op::Call<RmsNormOptions>& call) {
  const TensorView& x = call.in();
  const RmsNormOptions& o = call.options;
  check_x(x);
  op::check_like(kName, "out", call.out(), x.dtype(), x.shape());
  if (o.residual) op::check_like(kName, "residual", *o.residual, x.dtype(), x.shape());
  if (o.residual_out) {
    if (!o.residual)
      fail(ErrorKind::value, kName, ": residual_out is x + residual; give residual too");
    op::check_like(kName, "residual_out", *o.residual_out, x.dtype(), x.shape());
  }
  check_weight(call);
  if (!(o.eps >= 0)) fail(ErrorKind::value, kName, ": eps must be at least 0, got ", o.eps);
  return {call.out(), x, o.weight, o.residual, o.residual_out, o.eps};
}

op::Cost cost(const Problem& q) {
  op::Cost c{.bytes = double(q.x.nbytes() + q.out.nbytes()), .flops = 4.0 * double(q.x.size())};
  for (const auto* t : {&q.weight, &q.residual, &q.residual_out})
    if (*t) c.bytes += double((*t)->nbytes());
  return c;
}

using Options = RmsNormOptions;
const op::Definition<Problem, Options> kDefinition{
    .name = kName,
    .group = "normalise",
    .summary = "Root mean square normalisation over the last axis, with residual addition.",
    .details =
        "out = h / sqrt(mean(h^2) + eps) * weight with h = x + residual, each row of the last axis "
        "on its own. x has any strides, rank 1 or more, dtype float32, float16 or bfloat16; weight "
        "has the dtype of x or float32. Computed in float32 from h before it is rounded to "
        "residual_out. A row with a NaN becomes NaN.",
    .aliases = {},
    .inputs = {{"x", "the rows to normalise"}},
    .options = {op::positional(op::option("weight", &Options::weight,
                                          "(cols,): multiplies the normalised rows")),
                op::option("eps", &Options::eps, "added to the mean of squares"),
                op::option("residual", &Options::residual,
                           "shape of x: added to x first; returns residual_out too")},
    .out_doc = "shape and dtype of x",
    .extra_outputs = {{{"residual_out", "x + residual, where residual is given"},
                       &Options::residual_out}},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .in_place = true,
    .infer = infer,
    .check = check,
    .cost = cost,
    .table = kTable};

}  // namespace
}  // namespace kernel::rms_norm

void rms_norm(const TensorView& out, const TensorView& x, const RmsNormOptions& options) {
  op::run(kernel::rms_norm::kDefinition, out, {x}, options);
}

RmsNormResult rms_norm(const TensorView& x, const RmsNormOptions& options) {
  auto tensors = op::allocate(kernel::rms_norm::kDefinition, {x}, options);
  RmsNormResult result{std::move(tensors[0]), {}};
  if (options.residual) result.residual_out = std::move(tensors.back());
  return result;
}

op::OperatorList ops::rms_norm() {
  static const op::OperatorOf entry(kernel::rms_norm::kDefinition);
  return {&entry};
}

}  // namespace tensorcraft
