// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/quantize/dequantize.hpp"

#include "tensorcraft/op/check.hpp"
#include "tensorcraft/ops/quantize/plan.h"
#include "tensorcraft/ops/quantize/quantize_simt.hpp"
#include "tensorcraft/ops/quantize/rungs.hpp"

namespace tensorcraft {
namespace kernel::quantize {
namespace {

constexpr std::string_view kName = "dequantize";

const jit::Rung kNaive{"tensorcraft/ops/quantize/dequantize.cuh",
                       "tensorcraft::kernel::quantize::dequantize_naive", kParams, config_text,
                       dequantize_naive_instances};
const jit::Rung kVectorized{"tensorcraft/ops/quantize/dequantize.cuh",
                            "tensorcraft::kernel::quantize::dequantize_vectorized", kParams,
                            config_text, dequantize_vectorized_instances};

int out_bytes(const Problem& q) { return int(dtype_bytes(q.out.dtype())); }

op::Plan plan_naive(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return op::make_plan(kNaive, {q.x.dtype(), q.out.dtype()}, dequantize_naive_launch(p), p);
}

op::Plan plan_vectorized(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return op::make_plan(kVectorized, {q.x.dtype(), q.out.dtype()},
                       dequantize_vectorized_launch(p, out_bytes(q)), p);
}

op::Verdict accepts_vectorized(const Problem& q, const DeviceInfo&) {
  return op::decline(dequantize_vectorized_problem(params(q), out_bytes(q)));
}

const op::Variant<Problem> kTable[] = {
    {"vectorized", "16-byte accesses, several in flight in each thread", DeviceType::cuda,
     accepts_vectorized, nullptr, plan_vectorized},
    {"naive", "one thread an element, any strides", DeviceType::cuda, always, nullptr, plan_naive},
    {"cpu", "float, rows over all cores", DeviceType::cpu, always, dequantize_cpu},
    {"reference", "double, obvious loops", DeviceType::cpu, always, dequantize_reference},
};

Layout layout_of(const DequantizeOptions& o) { return {o.scheme, o.block_shape, o.scales_layout}; }

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const DequantizeOptions& o) {
  op::check_dtype(kName, "q", in[0], {DType::int8, DType::float8_e4m3fn, DType::float8_e5m2});
  if (o.dtype != DType::float32 && o.dtype != DType::float16 && o.dtype != DType::bfloat16)
    fail(ErrorKind::type, kName, ": dtype must be float32, float16 or bfloat16, got ", o.dtype);
  return {{"out", o.dtype, in[0].shape()}};
}

Problem check(const op::Call<DequantizeOptions>& call) {
  const TensorView& q = call.in();
  const DequantizeOptions& o = call.options;
  infer(call.inputs, o);
  op::check_like(kName, "out", call.out(), o.dtype, q.shape());
  if (o.zero_point && q.dtype() != DType::int8)
    fail(ErrorKind::value, kName, ": zero_point must not be given for float8; it is for int8");
  const Dims shape = scales_shape(kName, "q", q.shape(), layout_of(o));
  // A norm that stores codes gives its scales without the axis of one element.
  const bool lacks_axis =
      o.scheme == QuantizeScheme::token && call.in(1).rank() + 1 == shape.rank();
  const TensorView scales = lacks_axis ? call.in(1).expand_dims(call.in(1).rank()) : call.in(1);
  if (o.scheme == QuantizeScheme::tensor && scales.rank() > 0)
    fail(ErrorKind::value, kName, ": scales: expected one number for scheme \"tensor\", got shape ",
         scales.shape(), "; name the scheme that they were computed with");
  check_scales(kName, scales, o.zero_point, shape);
  const TensorView from = with_axis(q);
  return {.out = with_axis(call.out()),
          .x = from,
          .scales = scales,
          .zero_point = o.zero_point,
          .tiles = tiles_of(from.shape(), layout_of(o)),
          .given = true,
          .asymmetric = false,
          .power_of_two = false,
          .whole_tensor = o.scheme == QuantizeScheme::tensor};
}

op::Cost cost(const Problem& q) {
  return {.bytes = double(q.x.nbytes() + q.out.nbytes() + q.scales->nbytes()),
          .flops = 2.0 * double(q.x.size())};
}

using Options = DequantizeOptions;
const op::Definition<Problem, Options> kDefinition{
    .name = kName,
    .group = "quantise",
    .summary = "What quantize stands for, in floats again.",
    .details =
        "out = (q - zero point) * scale in float32, rounded once. q is float8_e4m3fn, float8_e5m2 "
        "or int8 with any strides; scales are as quantize gives them for the same scheme, "
        "contiguous.",
    .aliases = {},
    .inputs = {{"q", "float8 or int8"}, {"scales", "float32"}},
    .options = {op::positional(
                    op::option("dtype", &Options::dtype, "float32, float16 or bfloat16")),
                op::option("scheme", &Options::scheme, "what shares a scale"),
                op::option("block_shape", &Options::block_shape, "of scheme block"),
                op::option("scales_layout", &Options::scales_layout,
                           "of scheme block: how its scales lie"),
                op::option("zero_point", &Options::zero_point, "int32, shape of scales; for int8")},
    .out_doc = "shape of q, of dtype",
    .extra_outputs = {},
    .dtypes = {DType::float8_e4m3fn, DType::float8_e5m2, DType::int8},
    .in_place = false,
    .infer = infer,
    .check = check,
    .cost = cost,
    .table = kTable};

}  // namespace

const op::Operator& dequantize_operator() {
  static const auto& entry = *new op::OperatorOf(kDefinition);  // leaked, as Kept is
  return entry;
}

}  // namespace kernel::quantize

void dequantize(const TensorView& out, const TensorView& q, const TensorView& scales,
                const DequantizeOptions& options) {
  op::run(kernel::quantize::kDefinition, out, {q, scales}, options);
}

Tensor dequantize(const TensorView& q, const TensorView& scales, const DequantizeOptions& options) {
  return std::move(op::allocate(kernel::quantize::kDefinition, {q, scales}, options)[0]);
}

}  // namespace tensorcraft
