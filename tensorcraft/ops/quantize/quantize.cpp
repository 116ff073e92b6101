// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/quantize/quantize.hpp"

#include "tensorcraft/op/check.hpp"
#include "tensorcraft/op/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/quantize/dequantize.hpp"
#include "tensorcraft/ops/quantize/params.h"
#include "tensorcraft/ops/quantize/plan.h"
#include "tensorcraft/ops/quantize/quantize_simt.hpp"
#include "tensorcraft/ops/quantize/rungs.hpp"

#include <cstddef>

namespace tensorcraft {
namespace kernel::quantize {

std::string config_text(const void* config) {
  const auto& c = *static_cast<const Config*>(config);
  return join("tensorcraft::kernel::quantize::Config{.threads = ", c.threads,
              ", .group = ", c.group, ", .vector = ", c.vector, ", .slots = ", c.slots,
              ", .tile_rows = ", c.tile_rows, ", .given = ", c.given,
              ", .asymmetric = ", c.asymmetric, ", .nested = ", c.nested, "}");
}

Params params(const Problem& q) {
  const op::LastAxisRows x(q.x), out(q.out);
  return {.x_step = x.step,
          .out_step = out.step,
          .x = x.data,
          .out = out.data,
          .scales = q.scales->data_as<float>(),
          .zero_points = q.zero_point ? q.zero_point->data_as<int32_t>() : nullptr,
          .given = q.given,
          .asymmetric = q.asymmetric,
          .power_of_two = q.power_of_two,
          .tiles = q.tiles,
          .maps = row_maps(x.map, out.map)};
}

Dims scales_shape(std::string_view op, std::string_view arg, const Dims& shape,
                  const Layout& layout) {
  if (layout.scheme == QuantizeScheme::tensor) return {};
  const bool square =
      layout.scheme == QuantizeScheme::block && layout.block_shape == BlockShape::square;
  const int needed = square ? 2 : 1;
  if (shape.rank() < needed)
    fail(ErrorKind::value, op, ": ", arg, ": expected at least ", needed, " dimensions, got shape ",
         shape);
  const int last = shape.rank() - 1;
  Dims scales = shape;
  scales[last] = layout.scheme == QuantizeScheme::token ? 1 : div_ceil(shape[last], kBlock);
  if (square) scales[last - 1] = div_ceil(shape[last - 1], kBlock);
  if (layout.scheme == QuantizeScheme::token || layout.scales_layout == ScalesLayout::row)
    return scales;
  if (square)
    fail(ErrorKind::value, op, ": scales_layout column is for blocks of 1x128, not of 128x128");
  const int64_t rows = num_elements(Dims(std::span<const int64_t>(shape).first(size_t(last))));
  return {scales[last], round_up(rows, kPadding)};
}

Tiles tiles_of(const Dims& shape, const Layout& layout) {
  const int last = shape.rank() - 1;
  const int64_t rows = num_elements(Dims(std::span<const int64_t>(shape).first(size_t(last))));
  if (layout.scheme == QuantizeScheme::tensor) return tensor_tiles(rows, shape[last]);
  if (layout.scheme == QuantizeScheme::token) return token_tiles(rows, shape[last]);
  if (layout.block_shape == BlockShape::square)
    return square_tiles(rows, shape[last], shape[last - 1]);
  return block_tiles(rows, shape[last], layout.scales_layout == ScalesLayout::column);
}

void check_scales(std::string_view op, const TensorView& scales,
                  const std::optional<TensorView>& zero_point, const Dims& shape) {
  op::check_like(op, "scales", scales, DType::float32, shape);
  if (zero_point) op::check_like(op, "zero_point", *zero_point, DType::int32, shape);
  if (!scales.is_contiguous() || (zero_point && !zero_point->is_contiguous()))
    fail(ErrorKind::value, op, ": scales and zero points must be contiguous; copy them first");
}

TensorView with_axis(const TensorView& t) { return t.rank() == 0 ? t.expand_dims(0) : t; }

namespace {

constexpr std::string_view kName = "quantize";

const jit::Rung kNaive{"tensorcraft/ops/quantize/00_naive.cuh",
                       "tensorcraft::kernel::quantize::naive", kParams, config_text,
                       naive_instances};
const jit::Rung kInRegisters{"tensorcraft/ops/quantize/01_in_registers.cuh",
                             "tensorcraft::kernel::quantize::in_registers", kParams, config_text,
                             in_registers_instances};
const jit::Rung kAmax{"tensorcraft/ops/quantize/amax.cuh", "tensorcraft::kernel::quantize::amax",
                      kParams, config_text, amax_instances};

int x_bytes(const Problem& q) { return int(dtype_bytes(q.x.dtype())); }

bool is_contiguous(const Problem& q) { return q.x.is_contiguous() && q.out.is_contiguous(); }

// What in_registers is given: a whole tensor in parts.
Params register_params(const Problem& q) {
  return q.whole_tensor ? flat(params(q), x_bytes(q)) : params(q);
}

op::Plan plan_naive(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return op::make_plan(kNaive, {q.x.dtype(), q.out.dtype()}, naive_launch(p), p);
}

op::Plan in_registers_plan(const Problem& q, const Params& p) {
  return op::make_plan(kInRegisters, {q.x.dtype(), q.out.dtype()},
                       in_registers_launch(p, x_bytes(q)), p);
}

op::Plan plan_in_registers(const Problem& q, const DeviceInfo&) {
  return in_registers_plan(q, register_params(q));
}

// The second kernel joins what the blocks of the first found.
op::Plan plan_two_launches(const Problem& q, const DeviceInfo& device) {
  Params p = register_params(q);
  const Launch first = amax_launch(p, x_bytes(q), device.num_sms);
  p.parts = first.blocks;
  op::Plan plan = op::make_plan(kAmax, {q.x.dtype(), q.out.dtype()}, first, p);
  plan.add(in_registers_plan(q, p).steps()[0]);
  plan.workspace_bytes = size_t(first.blocks) * 2 * sizeof(float);
  plan.steps()[0].workspace_at = offsetof(Params, partials);
  return plan;
}

op::Verdict accepts_in_registers(const Problem& q, const DeviceInfo&) {
  if (q.whole_tensor) {
    if (!q.given) return op::decline("the scale of a whole tensor takes a launch of its own");
    if (!is_contiguous(q)) return op::decline("x and out must be contiguous");
    return op::decline(flat_problem(register_params(q), x_bytes(q)));
  }
  return op::decline(in_registers_problem(params(q), x_bytes(q)));
}

op::Verdict accepts_two_launches(const Problem& q, const DeviceInfo&) {
  if (!q.whole_tensor || q.given) return op::decline("is for one scale that must be computed");
  if (!is_contiguous(q)) return op::decline("x and out must be contiguous");
  return op::decline(flat_problem(register_params(q), x_bytes(q)));
}

const op::Variant<Problem> kTable[] = {
    {"in_registers",
     "what shares a scale stays in registers: one read, one write",
     DeviceType::cuda,
     accepts_in_registers,
     nullptr,
     plan_in_registers,
     {},
     "rows above 16384 elements need the registers of 512 threads"},
    {"two_launches", "the range of the whole tensor first, then its quantisation", DeviceType::cuda,
     accepts_two_launches, nullptr, plan_two_launches},
    {"naive", "one block for what shares a scale, any strides", DeviceType::cuda, always, nullptr,
     plan_naive},
    {"cpu", "float, rows over all cores", DeviceType::cpu, always, cpu},
    {"reference", "obvious loops, in float as the scales are", DeviceType::cpu, always, reference},
};

Layout layout_of(const QuantizeOptions& o) { return {o.scheme, o.block_shape, o.scales_layout}; }

void check_options(const QuantizeOptions& o) {
  if (o.dtype != DType::int8 && o.dtype != DType::float8_e4m3fn && o.dtype != DType::float8_e5m2)
    fail(ErrorKind::type, kName, ": dtype must be float8_e4m3fn, float8_e5m2 or int8, got ",
         o.dtype);
  if ((o.asymmetric || o.given_zero_point) && o.dtype != DType::int8)
    fail(ErrorKind::value, kName,
         ": zero_point must not be given for float8; it is for dtype int8");
  if (o.given_zero_point && !o.given_scales)
    fail(ErrorKind::value, kName, ": zero_point is given without scales; give both");
  if (o.given_scales && (o.asymmetric || o.power_of_two))
    fail(ErrorKind::value, kName,
         ": asymmetric and power_of_two say how to compute scales; leave them out where scales are "
         "given");
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const QuantizeOptions& o) {
  op::check_dtype(kName, "x", in[0], {DType::float32, DType::float16, DType::bfloat16});
  check_options(o);
  std::vector<op::OutputSpec> specs{{"out", o.dtype, in[0].shape()}};
  const Dims scales = scales_shape(kName, "x", in[0].shape(), layout_of(o));
  if (!o.given_scales) specs.push_back({"scales", DType::float32, scales});
  if (o.asymmetric) specs.push_back({"zero_point", DType::int32, scales});
  return specs;
}

Problem check(const op::Call<QuantizeOptions>& call) {
  const TensorView& x = call.in();
  const QuantizeOptions& o = call.options;
  const auto specs = infer(call.inputs, o);
  op::check_like(kName, "out", call.out(), o.dtype, x.shape());
  const bool given = o.given_scales.has_value();
  if (given && (o.scales || o.zero_point))
    fail(ErrorKind::value, kName, ": scales are given, so none are computed to be written");
  if (!given && (!o.scales || o.zero_point.has_value() != o.asymmetric))
    fail(ErrorKind::value, kName,
         ": give memory for the scales that are computed, and where asymmetric for zero points");
  const auto& scales = given ? o.given_scales : o.scales;
  if (!given && x.size() == 0 && scales->size() > 0)
    fail(ErrorKind::value, kName, ": x: shape ", x.shape(),
         " has no elements to find a scale of; give scales");
  const auto& zero_point = given ? o.given_zero_point : o.zero_point;
  check_scales(kName, *scales, zero_point, scales_shape(kName, "x", x.shape(), layout_of(o)));
  const TensorView from = with_axis(x);
  return {.out = with_axis(call.out()),
          .x = from,
          .scales = scales,
          .zero_point = zero_point,
          .tiles = tiles_of(from.shape(), layout_of(o)),
          .given = given,
          .asymmetric = o.asymmetric,
          .power_of_two = o.power_of_two,
          .whole_tensor = o.scheme == QuantizeScheme::tensor};
}

op::Cost cost(const Problem& q) {
  return {.bytes = double(q.x.nbytes() + q.out.nbytes() + q.scales->nbytes()),
          .flops = 3.0 * double(q.x.size())};
}

using Options = QuantizeOptions;
const op::Definition<Problem, Options> kDefinition{
    .name = kName,
    .group = "quantise",
    .summary = "float8 or int8 with a scale for a tensor, a token or a block of 128.",
    .details =
        "out = x / scale + zero point, rounded to nearest even and saturated. A computed scale is "
        "amax / largest over what shares it (448 for float8_e4m3fn, 57344 for float8_e5m2, 127 for "
        "int8), 1 where that is 0; asymmetric: (max - min) / 255, with 0 between min and max. "
        "float32, float16 or bfloat16, any strides; float32 inside. A NaN or an infinity in x "
        "makes "
        "the computed scale of its group one; then NaN is NaN in float8 and 0 in int8. Under given "
        "scales infinities saturate. Scales are float32: [] for a tensor, x.shape[:-1] + [1] for "
        "tokens, x.shape[:-1] + [blocks] for blocks, or in columns [blocks, rows rounded up to 4], "
        "0 behind the last row.",
    .aliases = {},
    .inputs = {{"x", "what is quantised; any strides"}},
    .options = {op::positional(
                    op::option("dtype", &Options::dtype, "float8_e4m3fn, float8_e5m2 or int8")),
                op::option("scheme", &Options::scheme, "what shares a scale"),
                op::option("block_shape", &Options::block_shape, "of scheme block"),
                op::option("scales_layout", &Options::scales_layout,
                           "of scheme block: how its scales lie"),
                op::option("power_of_two", &Options::power_of_two,
                           "round computed scales up to powers of two"),
                op::option("asymmetric", &Options::asymmetric, "int8: compute zero points too"),
                op::option("scales", &Options::given_scales, "use these and compute none"),
                op::option("zero_point", &Options::given_zero_point,
                           "int32, shape of scales; with them, for int8")},
    .out_doc = "shape of x, of dtype",
    .extra_outputs = {{{"scales", "float32, where they are not given"}, &Options::scales},
                      {{"zero_point", "int32, where asymmetric"}, &Options::zero_point}},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .in_place = false,
    .infer = infer,
    .check = check,
    .cost = cost,
    .table = kTable};

}  // namespace
}  // namespace kernel::quantize

void quantize(const TensorView& out, const TensorView& x, const QuantizeOptions& options) {
  op::run(kernel::quantize::kDefinition, out, {x}, options);
}

QuantizeResult quantize(const TensorView& x, const QuantizeOptions& options) {
  auto tensors = op::allocate(kernel::quantize::kDefinition, {x}, options);
  QuantizeResult result{std::move(tensors[0]), {}, {}};
  if (tensors.size() > 1) result.scales = std::move(tensors[1]);
  if (tensors.size() > 2) result.zero_point = std::move(tensors[2]);
  return result;
}

op::OperatorList ops::quantize() {
  static const auto& entry =
      *new op::OperatorOf(kernel::quantize::kDefinition);  // leaked, as Kept is
  return {&entry, &kernel::quantize::dequantize_operator()};
}

}  // namespace tensorcraft
