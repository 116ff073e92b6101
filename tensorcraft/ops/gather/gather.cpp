// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gather/gather.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/moved_as.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/gather/plan.h"
#include "tensorcraft/ops/gather/problem.hpp"

#include <algorithm>
#include <bit>

namespace tensorcraft {
namespace kernel::gather {
namespace {

constexpr ConfigField kFields[] = {{"threads"}, {"vector"}, {"vectors"}, {"wide"}};

// NaN, or 0 if the dtype has none, in each element of 8 bytes.
uint64_t missing_bits(DType dtype) {
  if (!is_floating(dtype)) return 0;
  constexpr uint64_t nan_by_size[] = {0x7f7f7f7f7f7f7f7f, 0x7fff7fff7fff7fff, 0x7fffffff7fffffff};
  return nan_by_size[std::countr_zero(dtype_bytes(dtype))];
}

op::RungCall<Params, Given> rung_call(const Problem& q) {
  const Given given{int(dtype_bytes(q.x.dtype()))};
  Params p{.x = q.x.data(),
           .indices = q.indices.data(),
           .out = q.out.writable_data(),
           .axes = {},
           .count = q.out.size(),
           .axis_size = q.axis_size,
           .x_step = q.x_step,
           .missing = missing_bits(q.x.dtype())};
  for (int i = 0; i < q.out.rank(); ++i)
    add_axis(p.axes, q.out.shape(i), q.out.stride(i), q.indices.stride(i), q.x.stride(i));
  return {p, given, {q.indices.dtype(), op::moved_as(given.element_bytes)}};
}

// The kernel of units has the type of their size.
void complete(op::Plan& plan, std::string_view rung, const Problem& q, const DeviceInfo&) {
  if (rung != kMovesUnits) return;
  const auto call = rung_call(q);
  plan.first().kernel.types[1] = op::moved_as(std::min(unit_bytes(call.params, call.given), 8));
}

const auto kLadder = op::make_ladder<rung_call, kRungs, complete>("gather", kFields);

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "runs over all cores", .run = cpu},
    {.name = "reference", .idea = "obvious loops", .run = reference},
};

void check_indices(std::string_view op, const TensorView& indices) {
  op::check_dtype(op, "indices", indices, {DType::int32, DType::int64});
}

// A tensor as if it had the shape of out; strides of 0 do not move in it.
TensorView seen_as(const TensorView& t, const Dims& shape, const Dims& strides) {
  return t.at(t.data(), shape, strides);
}

// take: the axes of x with those of indices in the place of one.
struct Take {
  using Options = TakeOptions;
  static constexpr std::string_view kName = "take";
  static int axis(const TensorView& x, const Options& o) {
    if (x.rank() == 0) fail(ErrorKind::axis, "take: x: expected at least 1 dimension");
    if (!o.axis && x.rank() != 1)
      fail(ErrorKind::value, "take: axis must be given for an x of ", x.rank(), " dimensions");
    return normalize_axis(o.axis.value_or(0), x.rank(), "take");
  }
  // The sizes of x or its strides, with `middle` in the place of the axis.
  static Dims spliced(const Dims& of_x, int axis, const Dims& middle) {
    Dims all;
    for (int i = 0; i < of_x.rank(); ++i) {
      if (i != axis) all.push_back(of_x[i]);
      if (i == axis)
        for (const int64_t n : middle) all.push_back(n);
    }
    return all;
  }
  static Dims shape(const TensorView& x, const TensorView& indices, const Options& o) {
    const int a = axis(x, o);
    if (x.rank() - 1 + indices.rank() > kMaxRank)
      fail(ErrorKind::value, "take: indices: the result would have ", x.rank() - 1 + indices.rank(),
           " dimensions, expected at most ", kMaxRank);
    return spliced(x.shape(), a, indices.shape());
  }
  static Problem problem(const TensorView& out, const TensorView& x, const TensorView& indices,
                         const Options& o) {
    const int a = axis(x, o);
    Dims none, still = x.strides();
    for (int i = 0; i < indices.rank(); ++i) none.push_back(0);
    for (int i = 0; i < x.rank(); ++i) still[i] = 0;
    return {kName,
            out,
            seen_as(x, out.shape(), spliced(x.strides(), a, none)),
            seen_as(indices, out.shape(), spliced(still, a, indices.strides())),
            indices,
            x.shape(a),
            x.stride(a)};
  }
};

struct TakeAlongAxis {
  using Options = TakeAlongAxisOptions;
  static constexpr std::string_view kName = "take_along_axis";
  static int axis(const TensorView& x, const Options& o) {
    if (x.rank() == 0) fail(ErrorKind::axis, "take_along_axis: x: expected at least 1 dimension");
    return normalize_axis(o.axis, x.rank(), "take_along_axis");
  }
  static Dims shape(const TensorView& x, const TensorView& indices, const Options& o) {
    const int a = axis(x, o);
    Dims wanted = x.shape();
    if (indices.rank() == x.rank()) wanted[a] = indices.shape(a);
    op::check_like(kName, "indices", indices, indices.dtype(), wanted);
    return wanted;
  }
  static Problem problem(const TensorView& out, const TensorView& x, const TensorView& indices,
                         const Options& o) {
    const int a = axis(x, o);
    Dims strides = x.strides();
    strides[a] = 0;
    return {kName,      out,        seen_as(x, out.shape(), strides), indices, indices,
            x.shape(a), x.stride(a)};
  }
};

template <class Op>
std::vector<op::OutputSpec> infer(std::span<const TensorView> in,
                                  const typename Op::Options& options) {
  check_indices(Op::kName, in[1]);
  return {{"out", in[0].dtype(), Op::shape(in[0], in[1], options)}};
}

template <class Op>
Problem check(const op::Call<typename Op::Options>& call) {
  const TensorView &x = call.in(0), &indices = call.in(1);
  check_indices(Op::kName, indices);
  op::check_like(Op::kName, "out", call.out(), x.dtype(), Op::shape(x, indices, call.options));
  return Op::problem(call.out(), x, indices, call.options);
}

op::Cost cost(const Problem& q) {
  return {.bytes = 2.0 * double(q.out.nbytes()) + double(q.given.nbytes())};
}

const op::Definition<Problem, TakeOptions> kTake{
    .name = "take",
    .group = "data movement",
    .summary = "The parts of an array that indices name, along one axis.",
    .details =
        "out[..., i..., :] = x[..., indices[i...], :]; the bits are copied. An index is in "
        "[-n, n) for an axis of n elements. Another is an IndexError on the CPU; a GPU "
        "gives NaN for it, 0 where the dtype has none, and reads nothing outside x.",
    .inputs = {{"x", "any dtype, at least 1 dimension"},
               {"indices", op::takes(op::kIndexTypes, "%, any shape")}},
    .options = {op::positional(
        op::option("axis", &TakeOptions::axis, "which axis of x; None where x has only one"))},
    .out_doc = "shape of x with that of indices in the place of the axis, dtype of x",
    .dtypes = op::moved_dtypes(),
    .infer = infer<Take>,
    .check = check<Take>,
    .cost = cost,
    .ladder = kLadder,
    .host = kHost};

const op::Definition<Problem, TakeAlongAxisOptions> kTakeAlongAxis{
    .name = "take_along_axis",
    .group = "data movement",
    .summary = "An element of an axis for each index beside it.",
    .details =
        "out[..., i, ...] = x[..., indices[..., i, ...], ...]; the bits are copied. Indices "
        "as in take.",
    .inputs = {{"x", "any dtype, at least 1 dimension"},
               {"indices", op::takes(op::kIndexTypes, "%, shape of x but along the axis")}},
    .options = {op::positional(op::option("axis", &TakeAlongAxisOptions::axis, "which axis of x"))},
    .out_doc = "shape of indices, dtype of x",
    .dtypes = op::moved_dtypes(),
    .infer = infer<TakeAlongAxis>,
    .check = check<TakeAlongAxis>,
    .cost = cost,
    .ladder = kLadder,
    .host = kHost};

}  // namespace
}  // namespace kernel::gather

void take(const TensorView& out, const TensorView& x, const TensorView& indices,
          const TakeOptions& options) {
  op::run(kernel::gather::kTake, out, {x, indices}, options);
}
Tensor take(const TensorView& x, const TensorView& indices, const TakeOptions& options) {
  return std::move(op::allocate(kernel::gather::kTake, {x, indices}, options)[0]);
}
void take_along_axis(const TensorView& out, const TensorView& x, const TensorView& indices,
                     const TakeAlongAxisOptions& options) {
  op::run(kernel::gather::kTakeAlongAxis, out, {x, indices}, options);
}
Tensor take_along_axis(const TensorView& x, const TensorView& indices,
                       const TakeAlongAxisOptions& options) {
  return std::move(op::allocate(kernel::gather::kTakeAlongAxis, {x, indices}, options)[0]);
}

op::OperatorList ops::gather() {
  namespace g = kernel::gather;
  return op::registered(g::kTake, g::kTakeAlongAxis);
}

}  // namespace tensorcraft
