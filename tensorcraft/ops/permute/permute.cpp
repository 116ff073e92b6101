// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/permute/permute.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/moved_as.hpp"
#include "tensorcraft/op/launch/shared_address.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/permute/plan.h"
#include "tensorcraft/ops/permute/problem.hpp"

#include <array>

namespace tensorcraft {
namespace kernel::permute {

Params params(const Problem& q) {
  return make_params(q.x.data(), q.out.writable_data(), q.x.rank(), q.x.shape().data(),
                     q.x.strides().data(), q.out.strides().data());
}

namespace {

constexpr ConfigField kFields[] = {{"threads"}, {"vector_in"}, {"vector_out"},
                                   {"vectors"}, {"tile"},      {"wide"}};

Given given_of(const Problem& q) { return {int(dtype_bytes(q.x.dtype()))}; }

op::RungCall<Params, Given> rung_call(const Problem& q) {
  const Given given = given_of(q);
  return {params(q), given, {op::moved_as(given.element_bytes)}};
}

// The kernel of units has the type of their size.
void complete(op::Plan& plan, std::string_view rung, const Problem& q, const DeviceInfo&) {
  if (rung == "vectorized")
    plan.first().kernel.types[0] = op::moved_as(std::min(unit_bytes(params(q), given_of(q)), 8));
}

const auto kLadder = op::make_ladder<rung_call, kRungs, complete>("permute", kFields);

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "runs or tiles over all cores", .run = cpu},
    {.name = "reference", .idea = "obvious loops", .run = reference},
};

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

bool is_aligned(const TensorView& t) { return t.is_aligned(dtype_bytes(t.dtype())); }

// Each element as a last axis of bytes, which may lie anywhere.
TensorView as_bytes(const TensorView& t) {
  const auto bytes = int64_t(dtype_bytes(t.dtype()));
  if (t.rank() == kMaxRank)
    fail(ErrorKind::value, "copy: a tensor of ", kMaxRank, " dimensions at address ", t.data(),
         ", which is not a multiple of the size of ", t.dtype(), "; reshape it to fewer");
  Dims shape = t.shape(), strides = t.strides();
  for (int i = 0; i < t.rank(); ++i) strides[i] *= bytes;
  shape.push_back(bytes);
  strides.push_back(1);
  return {op::shared_address(t), DType::uint8, shape, strides, t.device()};
}

Problem check_copy(const op::Call<MoveOptions>& call) {
  const Problem q = check<Copy>(call);
  if (is_aligned(q.x) && is_aligned(q.out)) return q;
  return {as_bytes(q.out), as_bytes(q.x)};
}

// Elements that broadcast axes share are read once.
op::Cost cost(const Problem& q) {
  double distinct = double(dtype_bytes(q.x.dtype()));
  for (int i = 0; i < q.x.rank(); ++i)
    if (q.x.stride(i) != 0) distinct *= double(q.x.shape(i));
  return {.bytes = distinct + double(q.out.nbytes())};
}

const op::Definition<Problem, MoveOptions> kCopy{
    .name = "copy",
    .group = "data movement",
    .summary = "The same bits in row-major order or in `out`.",
    .details = "Any dtype, strides and addresses on both sides; NaN payloads stay.",
    .inputs = {{"x", "any shape and dtype"}},
    .out_doc = "shape and dtype of x",
    .dtypes = op::moved_dtypes(),
    .in_place = true,
    .any_address = true,
    .infer = infer<Copy>,
    .check = check_copy,
    .cost = cost,
    .ladder = kLadder,
    .host = kHost};

const op::Definition<Problem, MoveOptions> kTranspose{
    .name = "transpose",
    .group = "data movement",
    .summary = "The last two axes exchanged, in memory of its own.",
    .details =
        "out[..., j, i] = x[..., i, j]; any dtype and strides; the bits are copied. x.mT is "
        "the same as a view.",
    .inputs = {{"x", "at least 2 dimensions, any dtype"}},
    .out_doc = "shape of x with its last two sizes exchanged, dtype of x",
    .dtypes = op::moved_dtypes(),
    .infer = infer<Transpose>,
    .check = check<Transpose>,
    .cost = cost,
    .ladder = kLadder,
    .host = kHost};

const op::Definition<Problem, PermuteDimsOptions> kPermuteDims{
    .name = "permute_dims",
    .group = "data movement",
    .summary = "The axes in another order, in memory of its own.",
    .details =
        "Axis i of the result is axis axes[i] of x: (0, 2, 3, 1) makes NHWC of NCHW, (0, 3, "
        "1, 2) the reverse. Any dtype, rank and strides; the bits are copied. "
        "Tensor.permute_dims is the same as a view.",
    .inputs = {{"x", "any shape and dtype"}},
    .options = {op::positional(op::option("axes", &PermuteDimsOptions::axes,
                                          "each axis of x once; None: in reverse order"))},
    .out_doc = "the sizes of x in the order of axes, dtype of x",
    .dtypes = op::moved_dtypes(),
    .infer = infer<PermuteDims>,
    .check = check<PermuteDims>,
    .cost = cost,
    .ladder = kLadder,
    .host = kHost};

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
  return op::registered(p::kCopy, p::kTranspose, p::kPermuteDims);
}

}  // namespace tensorcraft
