// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/permute/permute.hpp"

#include "tensorcraft/op/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/moved_as.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/permute/params.h"
#include "tensorcraft/ops/permute/permute_cpu.hpp"
#include "tensorcraft/ops/permute/permute_simt.hpp"
#include "tensorcraft/ops/permute/plan.h"

#include <array>

namespace tensorcraft {
namespace kernel::permute {
namespace {

// out = x, which has the shape of out.
struct Problem {
  TensorView out, x;
};

std::string config_text(const void* config) {
  const auto& c = *static_cast<const Config*>(config);
  return join("tensorcraft::kernel::permute::Config{.threads = ", c.threads,
              ", .vector_in = ", c.vector_in, ", .vector_out = ", c.vector_out,
              ", .vectors = ", c.vectors, ", .tile = ", c.tile, ", .wide = ", c.wide, "}");
}

constexpr std::string_view kParams = "tensorcraft::kernel::permute::Params";
const jit::Rung kNaive{"tensorcraft/ops/permute/00_naive.cuh",
                       "tensorcraft::kernel::permute::naive", kParams, config_text,
                       naive_instances};
const jit::Rung kVectorized{"tensorcraft/ops/permute/01_vectorized.cuh",
                            "tensorcraft::kernel::permute::vectorized", kParams, config_text,
                            vectorized_instances};
const jit::Rung kTiled{"tensorcraft/ops/permute/02_tiled.cuh",
                       "tensorcraft::kernel::permute::tiled", kParams, config_text,
                       tiled_instances};

Move move_of(const Problem& q) {
  return make_move(q.x.data(), q.out.data(), int(dtype_bytes(q.x.dtype())), q.x.rank(),
                   q.x.shape().data(), q.x.strides().data(), q.out.strides().data());
}

op::Plan plan_naive(const Problem& q, const DeviceInfo&) {
  const Move m = move_of(q);
  return op::make_plan(kNaive, {op::moved_as(m.element_bytes)}, naive_launch(m), naive_params(m));
}

op::Plan plan_vectorized(const Problem& q, const DeviceInfo& device) {
  const Move m = move_of(q);
  return op::make_plan(kVectorized, {op::moved_as(std::min(unit_bytes(m), 8))},
                       vectorized_launch(m, device.num_sms), vectorized_params(m));
}

op::Plan plan_tiled(const Problem& q, const DeviceInfo& device) {
  const Move m = move_of(q);
  return op::make_plan(kTiled, {op::moved_as(m.element_bytes)}, tiled_launch(m, device.num_sms),
                       tiled_params(m, device.num_sms));
}

op::Verdict always(const Problem&, const DeviceInfo&) { return op::accept; }
op::Verdict accepts_vectorized(const Problem& q, const DeviceInfo&) {
  return op::decline(vectorized_problem(move_of(q)));
}
op::Verdict accepts_tiled(const Problem& q, const DeviceInfo&) {
  return op::decline(tiled_problem(move_of(q)));
}
op::Verdict suits_tiled(const Problem& q, const DeviceInfo&) {
  return op::decline(tiled_waste(move_of(q)));
}

const op::Variant<Problem> kTable[] = {
    {.name = "tiled",
     .idea = "turns tiles in shared memory: long lines and 16-byte accesses on both sides",
     .device = DeviceType::cuda,
     .accepts = accepts_tiled,
     .plan = plan_tiled,
     .suits = suits_tiled},
    {"vectorized", "rows in units of up to 16 bytes, several in flight in each thread",
     DeviceType::cuda, accepts_vectorized, nullptr, plan_vectorized},
    {"naive", "one thread an element, any strides", DeviceType::cuda, always, nullptr, plan_naive},
    {"cpu", "runs or tiles over all cores", DeviceType::cpu, always,
     [](const Problem& q) { cpu(q.out, q.x); }},
    {"reference", "obvious loops", DeviceType::cpu, always,
     [](const Problem& q) { reference(q.out, q.x); }},
};

const std::vector<DType> kAll = {DType::float32,       DType::float16,     DType::bfloat16,
                                 DType::float8_e4m3fn, DType::float8_e5m2, DType::int8,
                                 DType::int16,         DType::int32,       DType::int64,
                                 DType::uint8,         DType::bool_};

TensorView permuted(const TensorView& x, const std::optional<Dims>& given) {
  std::array<int, kMaxRank> axes{};
  for (int i = 0; i < x.rank(); ++i) axes[size_t(i)] = x.rank() - 1 - i;
  unsigned seen = 0;
  if (given && given->rank() == x.rank())
    for (int i = 0; i < x.rank(); ++i) {
      axes[size_t(i)] = normalize_axis((*given)[i], x.rank(), "permute_dims: axes");
      seen |= 1u << axes[size_t(i)];
    }
  if (given && (given->rank() != x.rank() || seen + 1 != 1u << x.rank()))
    fail(ErrorKind::value, "permute_dims: axes must name each of the ", x.rank(),
         " axes of x once, got ", *given);
  return x.permute(std::span(axes).first(size_t(x.rank())));
}

// The operators: the options of each, and x as it lies in memory in the shape of out.
struct Copy {
  using Options = MoveOptions;
  static constexpr std::string_view kName = "copy";
  static TensorView source(const TensorView& x, const Options&) { return x; }
};
struct Transpose {
  using Options = MoveOptions;
  static constexpr std::string_view kName = "transpose";
  static TensorView source(const TensorView& x, const Options&) {
    if (x.rank() < 2)
      fail(ErrorKind::value, "transpose: x: expected at least 2 dimensions, got shape ", x.shape());
    return x.transpose(-2, -1);
  }
};
struct PermuteDims {
  using Options = PermuteDimsOptions;
  static constexpr std::string_view kName = "permute_dims";
  static TensorView source(const TensorView& x, const Options& o) { return permuted(x, o.axes); }
};

template <class Op>
std::vector<op::OutputSpec> infer(std::span<const TensorView> in,
                                  const typename Op::Options& options) {
  return {{"out", in[0].dtype(), Op::source(in[0], options).shape()}};
}

template <class Op>
Problem check(const op::Call<typename Op::Options>& call) {
  const TensorView x = Op::source(call.in(), call.options);
  op::check_like(Op::kName, "out", call.out(), x.dtype(), x.shape());
  return {call.out(), x};
}

// Elements that broadcast axes share are read once.
op::Cost cost(const Problem& q) {
  double distinct = double(dtype_bytes(q.x.dtype()));
  for (int i = 0; i < q.x.rank(); ++i)
    if (q.x.stride(i) != 0) distinct *= double(q.x.shape(i));
  return {.bytes = distinct + double(q.out.nbytes()), .flops = 0};
}

const op::Definition<Problem, MoveOptions> kCopy{
    .name = "copy",
    .group = "data movement",
    .summary = "The same bits in row-major order or in `out`.",
    .details = "Any dtype and strides on both sides; NaN payloads stay.",
    .aliases = {},
    .inputs = {{"x", "any shape and dtype"}},
    .options = {},
    .out_doc = "shape and dtype of x",
    .extra_outputs = {},
    .dtypes = kAll,
    .in_place = true,
    .infer = infer<Copy>,
    .check = check<Copy>,
    .cost = cost,
    .table = kTable};

const op::Definition<Problem, MoveOptions> kTranspose{
    .name = "transpose",
    .group = "data movement",
    .summary = "The last two axes exchanged, in memory of its own.",
    .details =
        "out[..., j, i] = x[..., i, j]; any dtype and strides; the bits are copied. x.mT is "
        "the same as a view.",
    .aliases = {},
    .inputs = {{"x", "at least 2 dimensions, any dtype"}},
    .options = {},
    .out_doc = "shape of x with its last two sizes exchanged, dtype of x",
    .extra_outputs = {},
    .dtypes = kAll,
    .in_place = false,
    .infer = infer<Transpose>,
    .check = check<Transpose>,
    .cost = cost,
    .table = kTable};

const op::Definition<Problem, PermuteDimsOptions> kPermuteDims{
    .name = "permute_dims",
    .group = "data movement",
    .summary = "The axes in another order, in memory of its own.",
    .details =
        "Axis i of the result is axis axes[i] of x: (0, 2, 3, 1) makes NHWC of NCHW, (0, 3, "
        "1, 2) the reverse. Any dtype, rank and strides; the bits are copied. "
        "Tensor.permute_dims is the same as a view.",
    .aliases = {},
    .inputs = {{"x", "any shape and dtype"}},
    .options = {op::positional(op::option("axes", &PermuteDimsOptions::axes,
                                          "each axis of x once; None: in reverse order"))},
    .out_doc = "the sizes of x in the order of axes, dtype of x",
    .extra_outputs = {},
    .dtypes = kAll,
    .in_place = false,
    .infer = infer<PermuteDims>,
    .check = check<PermuteDims>,
    .cost = cost,
    .table = kTable};

}  // namespace
}  // namespace kernel::permute

void copy(const TensorView& out, const TensorView& x, const MoveOptions& options) {
  op::run(kernel::permute::kCopy, out, {x}, options);
}
Tensor copy(const TensorView& x, const MoveOptions& options) {
  return std::move(op::allocate(kernel::permute::kCopy, {x}, options)[0]);
}
void transpose(const TensorView& out, const TensorView& x, const MoveOptions& options) {
  op::run(kernel::permute::kTranspose, out, {x}, options);
}
Tensor transpose(const TensorView& x, const MoveOptions& options) {
  return std::move(op::allocate(kernel::permute::kTranspose, {x}, options)[0]);
}
void permute_dims(const TensorView& out, const TensorView& x, const PermuteDimsOptions& options) {
  op::run(kernel::permute::kPermuteDims, out, {x}, options);
}
Tensor permute_dims(const TensorView& x, const PermuteDimsOptions& options) {
  return std::move(op::allocate(kernel::permute::kPermuteDims, {x}, options)[0]);
}

op::OperatorList ops::permute() {
  namespace p = kernel::permute;
  static const auto& all =
      *new op::OperatorList{// leaked, as Kept is
                            new op::OperatorOf(p::kCopy), new op::OperatorOf(p::kTranspose),
                            new op::OperatorOf(p::kPermuteDims)};
  return all;
}

}  // namespace tensorcraft
