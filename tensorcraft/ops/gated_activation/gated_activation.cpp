// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gated_activation/gated_activation.hpp"

#include "tensorcraft/op/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/gated_activation/gated_activation_cpu.hpp"
#include "tensorcraft/ops/gated_activation/gated_activation_simt.hpp"
#include "tensorcraft/ops/gated_activation/params.h"
#include "tensorcraft/ops/gated_activation/plan.h"

namespace tensorcraft {
namespace kernel::gated_activation {
namespace {

std::string config_text(const void* config) {
  constexpr std::string_view kGates[] = {"silu", "gelu", "gelu_tanh"};
  const auto& c = *static_cast<const Config*>(config);
  return join("tensorcraft::kernel::gated_activation::Config{.gate = ",
              "tensorcraft::kernel::gated_activation::Gate::", kGates[size_t(c.gate)],
              ", .threads = ", c.threads, ", .group = ", c.group, ", .vectors = ", c.vectors,
              ", .nested = ", c.nested, "}");
}

constexpr std::string_view kParams =
    "tensorcraft::ParamsOf<tensorcraft::kernel::gated_activation::Params, Config>";
const jit::Rung kNaive{"tensorcraft/ops/gated_activation/00_naive.cuh",
                       "tensorcraft::kernel::gated_activation::naive", kParams, config_text,
                       naive_instances};
const jit::Rung kVectorized{"tensorcraft/ops/gated_activation/01_vectorized.cuh",
                            "tensorcraft::kernel::gated_activation::vectorized", kParams,
                            config_text, vectorized_instances};

Params params(const Problem& q) {
  const op::LastAxisRows x(q.x), out(q.out);
  return {.x_step = x.step,
          .out_step = out.step,
          .x = x.data,
          .out = out.data,
          .rows = q.cols() ? q.out.size() / q.cols() : 0,
          .cols = q.cols(),
          .maps = row_maps(x.map, out.map)};
}

int element_bytes(const Problem& q) { return int(dtype_bytes(q.x.dtype())); }

op::Plan plan_naive(const Problem& q, const DeviceInfo&) {
  const Params p = params(q);
  return op::make_plan(kNaive, {q.x.dtype()}, naive_launch(p, q.gate), p);
}

op::Plan plan_vectorized(const Problem& q, const DeviceInfo& device) {
  Params p = params(q);
  const Launch launch = vectorized_launch(p, q.gate, element_bytes(q), device.num_sms);
  return op::make_plan(kVectorized, {q.x.dtype()}, launch, p);
}

op::Verdict always(const Problem&, const DeviceInfo&) { return op::accept; }

op::Verdict accepts_vectorized(const Problem& q, const DeviceInfo&) {
  return op::decline(vectorized_problem(params(q), element_bytes(q)));
}

const op::Variant<Problem> kTable[] = {
    {"vectorized", "16-byte accesses, several in flight in both halves of a row", DeviceType::cuda,
     accepts_vectorized, nullptr, plan_vectorized},
    {"naive", "one thread an element, any strides", DeviceType::cuda, always, nullptr, plan_naive},
    {"cpu", "float, rows over all cores", DeviceType::cpu, always, cpu},
    {"reference", "double, obvious loops", DeviceType::cpu, always, reference},
};

constexpr std::string_view name(Gate gate) {
  return gate == Gate::silu ? "silu_and_mul" : "gelu_and_mul";
}

// Shape of out.
Dims halved(Gate gate, const TensorView& x) {
  op::check_dtype(name(gate), "x", x, {DType::float32, DType::float16, DType::bfloat16});
  if (x.rank() == 0 || x.shape(x.rank() - 1) % 2 != 0)
    fail(ErrorKind::value, name(gate),
         ": x: the last axis must have an even length, gates then what they multiply, got shape ",
         x.shape());
  Dims shape = x.shape();
  shape[x.rank() - 1] /= 2;
  return shape;
}

template <Gate gate, class Options>
std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options&) {
  return {{"out", in[0].dtype(), halved(gate, in[0])}};
}

template <Gate gate, class Options>
Problem check(const op::Call<Options>& call) {
  const TensorView& x = call.in();
  op::check_like(name(gate), "out", call.out(), x.dtype(), halved(gate, x));
  return {gate, call.out(), x};
}

Problem check_gelu(const op::Call<GeluAndMulOptions>& call) {
  Problem q = check<Gate::gelu>(call);
  if (call.options.approximate == GeluApproximation::tanh) q.gate = Gate::gelu_tanh;
  return q;
}

op::Cost cost(const Problem& q) {
  return {.bytes = double(q.x.nbytes() + q.out.nbytes()), .flops = 2.0 * double(q.out.size())};
}

template <Gate gate, class Options>
op::Definition<Problem, Options> define(std::string_view summary, std::string_view details,
                                        std::vector<op::Option<Options>> options,
                                        Problem (*check)(const op::Call<Options>&)) {
  return {.name = name(gate),
          .group = "elementwise",
          .summary = summary,
          .details = details,
          .aliases = {},
          .inputs = {{"x", "(..., 2d): gates, then what they multiply; any strides"}},
          .options = std::move(options),
          .out_doc = "(..., d), dtype of x",
          .extra_outputs = {},
          .dtypes = {DType::float32, DType::float16, DType::bfloat16},
          .in_place = false,
          .infer = infer<gate, Options>,
          .check = check,
          .cost = cost,
          .table = kTable};
}

const auto kSilu = define<Gate::silu, SiluAndMulOptions>(
    "silu of the first half of each row times the second half.",
    "out = silu(x[..., :d]) * x[..., d:] with silu(g) = g / (1 + e^-g), in float32 and rounded "
    "once. float32, float16 or bfloat16, any strides; out lies apart from x. A NaN in either half "
    "gives NaN.",
    {}, check<Gate::silu, SiluAndMulOptions>);

const auto kGelu = define<Gate::gelu, GeluAndMulOptions>(
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
  static const auto& silu =
      *new op::OperatorOf(kernel::gated_activation::kSilu);  // leaked, as Kept is
  static const auto& gelu = *new op::OperatorOf(kernel::gated_activation::kGelu);
  return {&silu, &gelu};
}

}  // namespace tensorcraft
