// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/softmax/softmax.hpp"

#include "tensorcraft/op/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/rows.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/softmax/plan.h"
#include "tensorcraft/ops/softmax/softmax_cpu.hpp"
#include "tensorcraft/ops/softmax/softmax_simt.hpp"

#include <cmath>
#include <utility>

namespace tensorcraft {
namespace kernel::softmax {
namespace {

constexpr const char* kFormNames[] = {"softmax", "log_softmax", "logsumexp"};
constexpr std::string_view kMaskNames[] = {"none", "boolean", "like_x", "float32"};

std::string config_text(const void* config) {
  const auto& c = *static_cast<const Config*>(config);
  return join("tensorcraft::kernel::softmax::Config{.threads = ", c.threads, ", .group = ", c.group,
              ", .vector = ", c.vector, ", .slots = ", c.slots, ", .whole = ", c.whole,
              ", .nested = ", c.nested, ", .cluster = ", c.cluster, op::stages_text(c.stages),
              ", .form = tensorcraft::kernel::softmax::Form::", kFormNames[size_t(c.form)],
              ", .mask = tensorcraft::kernel::softmax::Mask::", kMaskNames[size_t(c.mask)],
              ", .scaled = ", c.scaled, "}");
}

constexpr std::string_view kParams =
    "tensorcraft::ParamsOf<tensorcraft::kernel::softmax::Params, Config>";
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
const jit::Rung kStaged{"tensorcraft/ops/softmax/05_staged.cuh",
                        "tensorcraft::kernel::softmax::staged", kParams, config_text,
                        staged_instances};
const jit::Rung kPersistent{"tensorcraft/ops/softmax/06_persistent.cuh",
                            "tensorcraft::kernel::softmax::persistent", kParams, config_text,
                            persistent_instances};

Given given(const Problem& q) {
  if (!q.mask) return {.form = q.form};
  const Mask mask = q.mask->dtype() == DType::bool_  ? Mask::boolean
                    : q.mask->dtype() == q.x.dtype() ? Mask::like_x
                                                     : Mask::float32;
  return {.form = q.form, .mask = mask};
}

Params params(const Problem& q) {
  Params p{.x = q.x.data(),
           .out = q.out.data(),
           .rows = q.rows(),
           .cols = q.cols(),
           .x_step = q.x.stride(q.axis),
           .out_step = q.form == Form::logsumexp ? 0 : q.out.stride(q.axis),
           .scale = q.scale,
           .maps = row_maps(op::row_map(q.x, q.axis), RowMap{}, op::row_map(q.out, q.axis))};
  if (q.mask) {
    p.mask = q.mask->data();
    p.mask_step = q.mask->stride(q.axis);
    p.maps.set(Params::kMask, op::row_map(*q.mask, q.axis));
  }
  return p;
}

op::Plan plan(const jit::Rung& rung, const Problem& q, const Launch& launch, const Params& p) {
  return op::make_plan(rung, {q.x.dtype()}, launch, p);
}

op::Plan plan_naive(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return plan(kNaive, q, naive_launch(p, given(q)), p);
}

op::Plan plan_block(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return plan(kBlock, q, block_launch(p, given(q)), p);
}

op::Plan plan_online(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return plan(kOnline, q, online_launch(p, q.element_bytes(), given(q)), p);
}

op::Plan plan_in_registers(const Problem& q, const DeviceInfo& device) {
  const Params p = params(q);
  Launch launch = in_registers_launch(p, q.element_bytes(), given(q));
  launch.min_blocks =
      op::blocks_with_room(launch.min_blocks, launch.config.threads, device.threads_per_sm);
  return plan(kInRegisters, q, launch, p);
}

op::Plan plan_cluster(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return plan(kCluster, q, cluster_launch(p, q.element_bytes(), given(q)), p);
}

op::Plan plan_staged(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return plan(kStaged, q, staged_launch(p, q.element_bytes(), given(q)), p);
}

op::PersistentRows persistent_rows(const Problem& q, const Params& p, const DeviceInfo& device) {
  return persistent_rows(p, q.element_bytes(), device.shared_bytes_per_block,
                         device.compute_capability >= 90);
}

op::Plan plan_persistent(const Problem& q, const DeviceInfo& device) {
  const Params p = params(q);
  const Launch launch = persistent_launch(p, q.element_bytes(), persistent_rows(q, p, device),
                                          device.num_sms, given(q));
  op::Plan made = plan(kPersistent, q, launch, p);
  made.counter_at = int(offsetof(Params, taken));
  return made;
}

op::Verdict always(const Problem&, const DeviceInfo&) { return op::accept; }

op::Verdict accepts_naive(const Problem& q, const DeviceInfo&) {
  return op::decline(naive_problem(params(q)));
}

op::Verdict accepts_online(const Problem& q, const DeviceInfo&) {
  return op::decline(online_problem(params(q), given(q)));
}

op::Verdict accepts_in_registers(const Problem& q, const DeviceInfo&) {
  return op::decline(in_registers_problem(params(q), q.element_bytes(), given(q)));
}

op::Verdict accepts_cluster(const Problem& q, const DeviceInfo& device) {
  return op::decline(
      cluster_problem(params(q), q.element_bytes(), device.compute_capability >= 90, given(q)));
}

op::Verdict accepts_staged(const Problem& q, const DeviceInfo& device) {
  return op::decline(
      staged_problem(params(q), q.element_bytes(), device.compute_capability >= 90, given(q)));
}

op::Verdict suits_staged(const Problem& q, const DeviceInfo&) {
  return op::decline(staged_doubt(params(q)));
}

op::Verdict accepts_persistent(const Problem& q, const DeviceInfo& device) {
  const Params p = params(q);
  return op::decline(persistent_problem(p, q.element_bytes(), persistent_rows(q, p, device),
                                        device.compute_capability >= 90, given(q)));
}

op::Verdict suits_persistent(const Problem& q, const DeviceInfo& device) {
  const Params p = params(q);
  return op::decline(persistent_doubt(p, q.element_bytes(), persistent_rows(q, p, device),
                                      device.num_sms, device.compute_capability >= 90));
}

using Row = op::Variant<Problem>;
constexpr Row kPersistentRow{"persistent",
                             "blocks stay: the next rows arrive while one is worked on",
                             DeviceType::cuda,
                             accepts_persistent,
                             nullptr,
                             plan_persistent,
                             {},
                             {},
                             suits_persistent};
constexpr Row kStagedRow{
    "staged",
    "the copy engine brings the row to the shared memory of a block or a cluster",
    DeviceType::cuda,
    accepts_staged,
    nullptr,
    plan_staged,
    {},
    {},
    suits_staged};
constexpr Row kInRegistersRow{
    "in_registers",   "a row in the registers of a warp or a block: read once, written once",
    DeviceType::cuda, accepts_in_registers,
    nullptr,          plan_in_registers};
constexpr Row kClusterRow{
    "cluster",        "a row in the registers of a cluster's blocks: one read, one write",
    DeviceType::cuda, accepts_cluster,
    nullptr,          plan_cluster};
constexpr Row kOnlineRow{
    "online",         "maximum and sum in one walk, 16-byte accesses; results take another",
    DeviceType::cuda, accepts_online,
    nullptr,          plan_online};
constexpr Row kBlockRow{
    "block",          "one block a row, maximum and sum through shuffles and shared memory",
    DeviceType::cuda, always,
    nullptr,          plan_block};
constexpr Row kNaiveRow{"naive", "one thread a row", DeviceType::cuda, accepts_naive,
                        nullptr, plan_naive};
constexpr Row kCpuRow{"cpu", "float, vector exponentials, rows over all cores", DeviceType::cpu,
                      always, cpu};
constexpr Row kReferenceRow{"reference", "double, obvious loops", DeviceType::cpu, always,
                            reference};

const Row kTable[] = {kPersistentRow, kStagedRow, kInRegistersRow, kClusterRow,  kOnlineRow,
                      kBlockRow,      kNaiveRow,  kCpuRow,         kReferenceRow};
// One value is written, so online too reads a row once, and without waiting for other blocks.
const Row kSumTable[] = {kInRegistersRow, kOnlineRow, kBlockRow, kNaiveRow, kCpuRow, kReferenceRow};

void check_x(Form form, const TensorView& x) {
  op::check_dtype(kFormNames[size_t(form)], "x", x,
                  {DType::float32, DType::float16, DType::bfloat16});
}

int axis_of(Form form, const TensorView& x, int64_t axis) {
  return normalize_axis(axis, x.rank(), kFormNames[size_t(form)]);
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const SoftmaxOptions&) {
  return {{"out", in[0].dtype(), in[0].shape()}};
}

template <Form form>
Problem check(const op::Call<SoftmaxOptions>& call) {
  constexpr const char* kName = kFormNames[size_t(form)];
  const SoftmaxOptions& o = call.options;
  const TensorView& x = call.in();
  check_x(form, x);
  op::check_like(kName, "out", call.out(), x.dtype(), x.shape());
  if (!std::isfinite(o.scale))
    fail(ErrorKind::value, kName, ": scale must be finite, got ", o.scale);
  Problem q{form, call.out(), x, axis_of(form, x, o.axis), o.scale};
  if (!o.mask) return q;
  op::check_dtype(kName, "mask", *o.mask, {DType::bool_, DType::float32, x.dtype()});
  try {
    q.mask = o.mask->broadcast_to(x.shape());
  } catch (const Error& e) {
    fail(e.kind(), kName, ": mask must broadcast to x: ", e.what());
  }
  return q;
}

Dims result_shape(const TensorView& x, const LogSumExpOptions& o) {
  check_x(Form::logsumexp, x);
  const int axis = axis_of(Form::logsumexp, x, o.axis);
  Dims shape;
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis)
      shape.push_back(x.shape(i));
    else if (o.keepdims)
      shape.push_back(1);
  return shape;
}

std::vector<op::OutputSpec> infer_logsumexp(std::span<const TensorView> in,
                                            const LogSumExpOptions& o) {
  return {{"out", in[0].dtype(), result_shape(in[0], o)}};
}

Problem check_logsumexp(const op::Call<LogSumExpOptions>& call) {
  const TensorView &x = call.in(), &out = call.out();
  const Dims shape = result_shape(x, call.options);
  op::check_like("logsumexp", "out", out, x.dtype(), shape);
  const int axis = axis_of(Form::logsumexp, x, call.options.axis);
  constexpr int64_t kTooMany = int64_t(1) << 30;  // a view may repeat elements without end
  if (x.shape(axis) >= kTooMany)
    fail(ErrorKind::unsupported,
         "logsumexp: x: the axis must have fewer than 2^30 elements, got shape ", x.shape());
  return {Form::logsumexp, call.options.keepdims ? out : out.expand_dims(axis), x, axis};
}

op::Cost cost(const Problem& q) {
  double bytes = double(q.x.nbytes() + q.out.nbytes());
  if (q.mask) {  // elements that broadcast axes share are read once
    double distinct = double(dtype_bytes(q.mask->dtype()));
    for (int i = 0; i < q.mask->rank(); ++i)
      if (q.mask->stride(i) != 0) distinct *= double(q.mask->shape(i));
    bytes += distinct;
  }
  return {.bytes = bytes, .flops = 4.0 * double(q.x.size())};
}

const std::vector<DType> kFloats = {DType::float32, DType::float16, DType::bfloat16};

using Options = SoftmaxOptions;
op::Definition<Problem, Options> definition(Form form, std::string_view summary,
                                            std::string_view details) {
  const bool is_log = form == Form::log_softmax;
  return {.name = kFormNames[size_t(form)],
          .group = "normalise",
          .summary = summary,
          .details = details,
          .aliases = {},
          .inputs = {{"x", "the logits"}},
          .options = {op::option("axis", &Options::axis, "axis whose elements together sum to 1"),
                      op::option("scale", &Options::scale, "multiplies x first"),
                      op::option("mask", &Options::mask,
                                 "broadcast to x: bool, false where x is hidden; or float32 or the "
                                 "dtype of x, added to x scale")},
          .out_doc = "shape and dtype of x",
          .extra_outputs = {},
          .dtypes = kFloats,
          .in_place = true,
          .infer = infer,
          .check = is_log ? check<Form::log_softmax> : check<Form::softmax>,
          .cost = cost,
          .table = kTable};
}

const auto kSoftmax = definition(
    Form::softmax, "Exponentials along an axis, scaled to sum to 1.",
    "out = exp(y - max) / sum(exp(y - max)) over the axis with y = x scale + mask. x has any shape "
    "and strides, dtype float32, float16 or bfloat16; computed in float32. Where a bool mask is "
    "false out is 0 whatever x is, and a row of which nothing but -inf is left is 0. Else -inf "
    "gives 0, and a row of nothing but -inf becomes NaN. A row with a NaN or +inf becomes NaN.");
const auto kLogSoftmax = definition(
    Form::log_softmax, "Logarithms of the softmax along an axis.",
    "out = y - max - log(sum(exp(y - max))) over the axis with y = x scale + mask. x has any shape "
    "and strides, dtype float32, float16 or bfloat16; computed in float32. Where a bool mask is "
    "false out is -inf whatever x is, and so is a row of which nothing but -inf is left. Else a "
    "row of nothing but -inf becomes NaN, as does a row with a NaN or +inf.");

using LogOptions = LogSumExpOptions;
const op::Definition<Problem, LogOptions> kLogSumExp{
    .name = "logsumexp",
    .group = "normalise",
    .summary = "Logarithm of the sum of exponentials along an axis.",
    .details =
        "out = max + log(sum(exp(x - max))) over the axis. x has any shape and strides, dtype "
        "float32, float16 or bfloat16; computed in float32. A row of nothing but -inf, or of no "
        "elements, gives -inf, one with +inf gives +inf, one with a NaN gives NaN.",
    .aliases = {},
    .inputs = {{"x", "the logits"}},
    .options = {op::option("axis", &LogOptions::axis, "axis whose elements are summed"),
                op::option("keepdims", &LogOptions::keepdims, "keep the axis, with one element")},
    .out_doc = "dtype of x, its shape without the axis",
    .extra_outputs = {},
    .dtypes = kFloats,
    .in_place = false,
    .infer = infer_logsumexp,
    .check = check_logsumexp,
    .cost = cost,
    .table = kSumTable};

}  // namespace
}  // namespace kernel::softmax

void softmax(const TensorView& out, const TensorView& x, const SoftmaxOptions& options) {
  op::run(kernel::softmax::kSoftmax, out, {x}, options);
}

Tensor softmax(const TensorView& x, const SoftmaxOptions& options) {
  return std::move(op::allocate(kernel::softmax::kSoftmax, {x}, options)[0]);
}

void log_softmax(const TensorView& out, const TensorView& x, const SoftmaxOptions& options) {
  op::run(kernel::softmax::kLogSoftmax, out, {x}, options);
}

Tensor log_softmax(const TensorView& x, const SoftmaxOptions& options) {
  return std::move(op::allocate(kernel::softmax::kLogSoftmax, {x}, options)[0]);
}

void logsumexp(const TensorView& out, const TensorView& x, const LogSumExpOptions& options) {
  op::run(kernel::softmax::kLogSumExp, out, {x}, options);
}

Tensor logsumexp(const TensorView& x, const LogSumExpOptions& options) {
  return std::move(op::allocate(kernel::softmax::kLogSumExp, {x}, options)[0]);
}

op::OperatorList ops::softmax() {
  using op::OperatorOf;  // leaked, as Kept is
  static const auto& softmax = *new OperatorOf(kernel::softmax::kSoftmax);
  static const auto& log_softmax = *new OperatorOf(kernel::softmax::kLogSoftmax);
  static const auto& logsumexp = *new OperatorOf(kernel::softmax::kLogSumExp);
  return {&softmax, &log_softmax, &logsumexp};
}

}  // namespace tensorcraft
