// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/quantize/quantize.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/op/launch/shared_address.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/quantize/plan.h"
#include "tensorcraft/ops/quantize/problem.hpp"

#include <cstddef>

namespace tensorcraft {
namespace kernel::quantize {
namespace {

constexpr std::string_view kName = "quantize", kBack = "dequantize";
constexpr ConfigField kFields[] = {{"threads"},   {"group"}, {"vector"},     {"slots"},
                                   {"tile_rows"}, {"given"}, {"asymmetric"}, {"nested"}};

CallParams params(const Problem& q) {
  const op::LastAxisRows x(q.x), out(q.out);
  return with_maps(
      Params{.x_step = x.step,
             .out_step = out.step,
             .x = x.data,
             .out = out.data,
             .scales = static_cast<float*>(op::shared_address(*q.scales)),
             .zero_points =
                 q.zero_point ? static_cast<int32_t*>(op::shared_address(*q.zero_point)) : nullptr,
             .given = q.given,
             .asymmetric = q.asymmetric,
             .power_of_two = q.power_of_two,
             .tiles = q.tiles},
      x.map, out.map);
}

Given given(const Problem& q) {
  return {.wide_bytes = int(dtype_bytes(q.x.dtype())),
          .whole_tensor = q.whole_tensor,
          .is_contiguous = q.x.is_contiguous() && q.out.is_contiguous()};
}

op::RungCall<CallParams, Given> rung_call(const Problem& q) {
  return {params(q), given(q), {q.x.dtype(), q.out.dtype()}};
}

op::RungCall<CallParams, Given> dequantize_call(const Problem& q) {
  const int out_bytes = int(dtype_bytes(q.out.dtype()));
  return {params(q), {.wide_bytes = out_bytes, .dequantizes = true}, {q.x.dtype(), q.out.dtype()}};
}

void complete(op::Plan&, std::string_view rung, const Problem&, const DeviceInfo&);
const auto kLadder = op::make_ladder<rung_call, kQuantizeRungs, complete>("quantize", kFields);
const auto kDequantizeLadder =
    op::make_ladder<dequantize_call, kDequantizeRungs>("quantize", kFields);

// The second step of two_launches is in_registers, which joins what the blocks of amax found.
void complete(op::Plan& plan, std::string_view rung, const Problem& q, const DeviceInfo&) {
  if (rung != "two_launches") return;
  const auto& p = plan.params_as<CallParams>(plan.first());
  const DType types[] = {q.x.dtype(), q.out.dtype()};
  plan.workspace_bytes = size_t(p.parts) * 2 * sizeof(float);
  plan.first().workspace_at = offsetof(Params, partials);
  plan.add(op::make_step(kLadder.rung(kSecondStep), types, registers_start(p, given(q))));
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, rows over all cores", .run = cpu},
    {.name = "reference", .idea = "obvious loops, in float as the scales are", .run = reference},
};
const op::HostVariant<Problem> kDequantizeHost[] = {
    {.name = "cpu", .idea = "float, rows over all cores", .run = dequantize_cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = dequantize_reference},
};

// How scales lie for a tensor of this shape; `op` is who asks.
struct Layout {
  QuantizeScheme scheme;
  BlockShape block_shape;
  ScalesLayout scales_layout;
};
template <class Options>
Layout layout_of(const Options& o) {
  return {o.scheme, o.block_shape, o.scales_layout};
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

// Float32 scales and int32 zero points that are contiguous and have `shape`.
void check_scales(std::string_view op, const TensorView& scales,
                  const std::optional<TensorView>& zero_point, const Dims& shape) {
  op::check_like(op, "scales", scales, DType::float32, shape);
  if (zero_point) op::check_like(op, "zero_point", *zero_point, DType::int32, shape);
  if (!scales.is_contiguous() || (zero_point && !zero_point->is_contiguous()))
    fail(ErrorKind::value, op, ": scales and zero points must be contiguous; copy them first");
}

// Scales as they were given, which for a whole tensor may be a list of one.
TensorView given_scales(const TensorView& scales, QuantizeScheme scheme) {
  const bool is_number = scales.size() == 1 && scales.rank() == 1;
  return is_number && scheme == QuantizeScheme::tensor ? scales.at(scales.data(), {}, {}) : scales;
}

// A tensor without axes as one of one element.
TensorView with_axis(const TensorView& t) { return t.rank() == 0 ? t.expand_dims(0) : t; }

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
         ": takes asymmetric and power_of_two to compute scales; leave them out if scales are "
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
  const auto scales = given ? given_scales(*o.given_scales, o.scheme) : o.scales;
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
const op::Definition<Problem, Options> kQuantize{
    .name = kName,
    .group = "quantise",
    .summary = "float8 or int8 with a scale for a tensor, a token or a block of 128.",
    .details =
        "out = x / scale + zero point, rounded to nearest even and saturated. A computed scale is "
        "amax / largest over what shares it (448 for float8_e4m3fn, 57344 for float8_e5m2, 127 for "
        "int8), 1 where that is 0; asymmetric: (max - min) / 255, with 0 between min and max. "
        "float32, float16 or bfloat16, any strides; float32 inside. A NaN or an infinity in x "
        "makes the computed scale of its group one; then, as under given scales, a NaN is NaN in "
        "float8 and 0 in int8, and infinities saturate. Scales are float32: [] for a tensor, "
        "x.shape[:-1] + [1] for "
        "tokens, x.shape[:-1] + [blocks] for blocks, or in columns [blocks, rows rounded up to 4], "
        "0 after the last row.",
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
                op::option("scales", &Options::given_scales,
                           op::takes(op::kFloat32, "%: use these and compute none")),
                op::option("zero_point", &Options::given_zero_point,
                           op::takes(op::kInt32, "%, shape of scales; with them, for int8"))},
    .out_doc = "shape of x, of dtype",
    .extra_outputs = {{{"scales", "float32, where they are not given", "!scales"},
                       &Options::scales},
                      {{"zero_point", "int32, where asymmetric", "asymmetric"},
                       &Options::zero_point}},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = kLadder,
    .host = kHost};

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const DequantizeOptions& o) {
  op::check_dtype(kBack, "q", in[0], {DType::int8, DType::float8_e4m3fn, DType::float8_e5m2});
  if (o.dtype != DType::float32 && o.dtype != DType::float16 && o.dtype != DType::bfloat16)
    fail(ErrorKind::type, kBack, ": dtype must be float32, float16 or bfloat16, got ", o.dtype);
  return {{"out", o.dtype, in[0].shape()}};
}

Problem check(const op::Call<DequantizeOptions>& call) {
  const TensorView& q = call.in();
  const DequantizeOptions& o = call.options;
  infer(call.inputs, o);
  op::check_like(kBack, "out", call.out(), o.dtype, q.shape());
  if (o.zero_point && q.dtype() != DType::int8)
    fail(ErrorKind::value, kBack, ": zero_point must not be given for float8; it is for int8");
  const Dims shape = scales_shape(kBack, "q", q.shape(), layout_of(o));
  // A norm that stores codes gives its scales without the axis of one element.
  const bool lacks_axis =
      o.scheme == QuantizeScheme::token && call.in(1).rank() + 1 == shape.rank();
  const TensorView scales =
      lacks_axis ? call.in(1).expand_dims(call.in(1).rank()) : given_scales(call.in(1), o.scheme);
  if (o.scheme == QuantizeScheme::tensor && scales.rank() > 0)
    fail(ErrorKind::value, kBack, ": scales: expected one number for scheme \"tensor\", got shape ",
         scales.shape(), "; name the scheme that they were computed with");
  check_scales(kBack, scales, o.zero_point, shape);
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

op::Cost dequantize_cost(const Problem& q) {
  return {.bytes = double(q.x.nbytes() + q.out.nbytes() + q.scales->nbytes()),
          .flops = 2.0 * double(q.x.size())};
}

using BackOptions = DequantizeOptions;
const op::Definition<Problem, BackOptions> kDequantize{
    .name = kBack,
    .group = "quantise",
    .summary = "What quantize stands for, in floats again.",
    .details =
        "out = (q - zero point) * scale in float32, rounded once. q is float8_e4m3fn, float8_e5m2 "
        "or int8 with any strides; scales are as quantize gives them for the same scheme, "
        "contiguous.",
    .inputs = {{"q", op::takes(op::kInt8, "float8 or %")},
               {"scales", op::takes(op::kFloat32, "%")}},
    .options = {op::positional(
                    op::option("dtype", &BackOptions::dtype, "float32, float16 or bfloat16")),
                op::option("scheme", &BackOptions::scheme, "what shares a scale"),
                op::option("block_shape", &BackOptions::block_shape, "of scheme block"),
                op::option("scales_layout", &BackOptions::scales_layout,
                           "of scheme block: how its scales lie"),
                op::option("zero_point", &BackOptions::zero_point,
                           op::takes(op::kInt32, "%, shape of scales; for int8"))},
    .out_doc = "shape of q, of dtype",
    .dtypes = {DType::float8_e4m3fn, DType::float8_e5m2, DType::int8},
    .infer = infer,
    .check = check,
    .cost = dequantize_cost,
    .ladder = kDequantizeLadder,
    .host = kDequantizeHost};

}  // namespace
}  // namespace kernel::quantize

void quantize(const TensorView& out, const TensorView& x, const QuantizeOptions& options) {
  op::run(kernel::quantize::kQuantize, out, {x}, options);
}

QuantizeResult quantize(const TensorView& x, const QuantizeOptions& options) {
  auto tensors = op::allocate(kernel::quantize::kQuantize, {x}, options);
  QuantizeResult result{std::move(tensors[0]), {}, {}};
  if (tensors.size() > 1) result.scales = std::move(tensors[1]);
  if (tensors.size() > 2) result.zero_point = std::move(tensors[2]);
  return result;
}

void dequantize(const TensorView& out, const TensorView& q, const TensorView& scales,
                const DequantizeOptions& options) {
  op::run(kernel::quantize::kDequantize, out, {q, scales}, options);
}

Tensor dequantize(const TensorView& q, const TensorView& scales, const DequantizeOptions& options) {
  return std::move(op::allocate(kernel::quantize::kDequantize, {q, scales}, options)[0]);
}

op::OperatorList ops::quantize() {
  return op::registered(kernel::quantize::kQuantize, kernel::quantize::kDequantize);
}

}  // namespace tensorcraft
