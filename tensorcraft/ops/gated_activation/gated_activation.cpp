// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gated_activation/gated_activation.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/gated_activation/plan.h"
#include "tensorcraft/ops/gated_activation/problem.hpp"

namespace tensorcraft {
namespace kernel::gated_activation {
namespace {

constexpr ConfigField kFields[] = {
    {"gate", op::EnumNames<Activation>::names}, {"threads"}, {"group"}, {"vectors"}, {"nested"}};

op::RungCall<CallParams, Given> rung_call(const Problem& q) {
  const op::LastAxisRows x(q.x), out(q.out);
  const CallParams p = with_maps(Params{.x_step = x.step,
                                        .out_step = out.step,
                                        .x = x.data,
                                        .out = out.data,
                                        .rows = q.cols() ? q.out.size() / q.cols() : 0,
                                        .cols = q.cols()},
                                 x.map, out.map);
  return {p, {q.gate, int(dtype_bytes(q.x.dtype()))}, {q.x.dtype()}};
}

const auto kLadder = op::make_ladder<rung_call, kRungs>("gated_activation", kFields);

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, rows over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

constexpr std::string_view name(Activation gate) {
  return gate == Activation::silu ? "silu_and_mul" : "gelu_and_mul";
}

// Shape of out.
Dims halved(Activation gate, const TensorView& x) {
  op::check_dtype(name(gate), "x", x, {DType::float32, DType::float16, DType::bfloat16});
  if (x.rank() == 0 || x.shape(x.rank() - 1) % 2 != 0)
    fail(ErrorKind::value, name(gate),
         ": x: the last axis must have an even length, gates then what they multiply, got shape ",
         x.shape());
  Dims shape = x.shape();
  shape[x.rank() - 1] /= 2;
  return shape;
}

template <Activation gate, class Options>
std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options&) {
  return {{"out", in[0].dtype(), halved(gate, in[0])}};
}

template <Activation gate, class Options>
Problem check(const op::Call<Options>& call) {
  const TensorView& x = call.in();
  op::check_like(name(gate), "out", call.out(), x.dtype(), halved(gate, x));
  return {gate, call.out(), x};
}

Problem check_gelu(const op::Call<GeluAndMulOptions>& call) {
  Problem q = check<Activation::gelu>(call);
  if (call.options.approximate == GeluApproximation::tanh) q.gate = Activation::gelu_tanh;
  return q;
}

op::Cost cost(const Problem& q) {
  return {.bytes = double(q.x.nbytes() + q.out.nbytes()), .flops = 2.0 * double(q.out.size())};
}

template <Activation gate, class Options>
op::Definition<Problem, Options> define(std::string_view summary, std::string_view details,
                                        std::vector<op::Option<Options>> options,
                                        Problem (*check)(const op::Call<Options>&)) {
  return {.name = name(gate),
          .group = "elementwise",
          .summary = summary,
          .details = details,
          .inputs = {{"x", "(..., 2d): gates, then what they multiply; any strides"}},
          .options = std::move(options),
          .out_doc = "(..., d), dtype of x",
          .dtypes = {DType::float32, DType::float16, DType::bfloat16},
          .infer = infer<gate, Options>,
          .check = check,
          .cost = cost,
          .ladder = kLadder,
          .host = kHost};
}

const auto kSilu = define<Activation::silu, SiluAndMulOptions>(
    "silu of the first half of each row times the second half.",
    "out = silu(x[..., :d]) * x[..., d:] with silu(g) = g / (1 + e^-g), in float32 and rounded "
    "once. float32, float16 or bfloat16, any strides; out lies apart from x. A NaN in either half "
    "gives NaN.",
    {}, check<Activation::silu, SiluAndMulOptions>);

const auto kGelu = define<Activation::gelu, GeluAndMulOptions>(
    "gelu of the first half of each row times the second half.",
    "out = gelu(x[..., :d]) * x[..., d:]; gelu(g) = g times the normal distribution's cumulative "
    "probability, or its approximation by tanh; in float32 and rounded once. float32, float16 or "
    "bfloat16, any strides; out lies apart from x. A NaN in either half gives NaN.",
    {op::option("approximate", &GeluAndMulOptions::approximate, "\"tanh\": the tanh form")},
    check_gelu);

}  // namespace
}  // namespace kernel::gated_activation

void silu_and_mul(const TensorView& out, const TensorView& x, const SiluAndMulOptions& options) {
  op::run(kernel::gated_activation::kSilu, out, {x}, options);
}

Tensor silu_and_mul(const TensorView& x, const SiluAndMulOptions& options) {
  return std::move(op::allocate(kernel::gated_activation::kSilu, {x}, options)[0]);
}

void gelu_and_mul(const TensorView& out, const TensorView& x, const GeluAndMulOptions& options) {
  op::run(kernel::gated_activation::kGelu, out, {x}, options);
}

Tensor gelu_and_mul(const TensorView& x, const GeluAndMulOptions& options) {
  return std::move(op::allocate(kernel::gated_activation::kGelu, {x}, options)[0]);
}

op::OperatorList ops::gated_activation() {
  return op::registered(kernel::gated_activation::kSilu, kernel::gated_activation::kGelu);
}

}  // namespace tensorcraft
