// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/group_norm/group_norm.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/group_norm/plan.h"
#include "tensorcraft/ops/group_norm/problem.hpp"

namespace tensorcraft {
namespace kernel::group_norm {
namespace {

constexpr std::string_view kName = "group_norm";

constexpr ConfigField kFields[] = {{"threads"}, {"group"}, {"vector"}, {"slots"},
                                   {"cluster"}, {"whole"}, {"planes"}, {"nested"}};

// The positions of a plane, which one channel of one sample has.
RowMap plane_map(const TensorView& t) {
  Dims shape, strides;
  for (int i = 1; i < t.rank(); ++i) {
    shape.push_back(t.shape(i));
    strides.push_back(t.stride(i));
  }
  return op::row_map(t.at(t.data(), shape, strides), 0);
}

Params params(const Problem& q) {
  Params p =
      contiguous_params(q.x.data(), data_of(q.weight), data_of(q.bias), q.out.writable_data(),
                        q.x.shape(0), q.x.shape(1), q.spatial(), q.groups, q.eps);
  p.x_batch = q.x.stride(0);
  p.x_channel = q.x.stride(1);
  p.x_spatial = plane_map(q.x);
  p.out_batch = q.out.stride(0);
  p.out_channel = q.out.stride(1);
  p.out_spatial = plane_map(q.out);
  return p;
}

op::RungCall<Params, Given> rung_call(const Problem& q) {
  const DType dtype = q.x.dtype(), vectors = q.weight ? q.weight->dtype()
                                             : q.bias ? q.bias->dtype()
                                                      : dtype;
  return {params(q), {.element_bytes = int(dtype_bytes(dtype))}, {dtype, vectors}};
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, groups over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

void check_x(const TensorView& x) {
  op::check_dtype(kName, "x", x, {DType::float32, DType::float16, DType::bfloat16});
  if (x.rank() < 2)
    fail(ErrorKind::value, kName,
         ": x: expected at least 2 dimensions, batch and channels, got shape ", x.shape());
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const GroupNormOptions&) {
  check_x(in[0]);
  return {{"out", in[0].dtype(), in[0].shape()}};
}

void check_vectors(const op::Call<GroupNormOptions>& call) {
  const TensorView& x = call.in();
  SymbolicSize channels("channels");
  channels.set_value(x.shape(1));
  SymbolicDType dtype({x.dtype()});
  if (x.dtype() != DType::float32) dtype.set_options({x.dtype(), DType::float32});
  const auto check = [&](const std::optional<TensorView>& t, std::string_view name) {
    if (t) TensorMatcher({channels}).with_dtype(dtype).verify(*t, kName, name);
  };
  check(call.options.weight, "weight");
  check(call.options.bias, "bias");
}

Problem check(const op::Call<GroupNormOptions>& call) {
  const TensorView& x = call.in();
  const GroupNormOptions& o = call.options;
  check_x(x);
  op::check_like(kName, "out", call.out(), x.dtype(), x.shape());
  if (o.num_groups < 1 || x.shape(1) % o.num_groups)
    fail(ErrorKind::value, kName, ": num_groups must divide the ", x.shape(1),
         " channels of x, got ", o.num_groups);
  check_vectors(call);
  if (!(o.eps >= 0)) fail(ErrorKind::value, kName, ": eps must be at least 0, got ", o.eps);
  return {call.out(), x, o.weight, o.bias, o.num_groups, o.eps};
}

op::Cost cost(const Problem& q) {
  op::Cost c{.bytes = double(q.x.nbytes() + q.out.nbytes()), .flops = 8.0 * double(q.x.size())};
  for (const auto* t : {&q.weight, &q.bias})
    if (*t) c.bytes += double((*t)->nbytes());
  return c;
}

using Options = GroupNormOptions;
const op::Definition<Problem, Options> kDefinition{
    .name = kName,
    .group = "normalise",
    .summary = "Normalisation of groups of channels of each sample.",
    .details =
        "out = (x - mean) / sqrt(variance + eps) * weight + bias, with mean and variance of each "
        "group of neighbouring channels of each sample of x, (batch, channels, ...), weight and "
        "bias of each channel. The variance is about the mean, in float32. Vectors are "
        "(channels,), both of one dtype, that of x or float32. A group with a NaN or an infinity "
        "becomes NaN.",
    .inputs = {{"x", "(batch, channels, ...), any strides"}},
    .options = {op::positional(op::option("num_groups", &Options::num_groups,
                                          "how many groups the channels are; divides them")),
                op::positional(op::option("weight", &Options::weight, "(channels,): a factor")),
                op::positional(op::option("bias", &Options::bias, "(channels,): added after it")),
                op::option("eps", &Options::eps, "added to the variance")},
    .out_doc = "shape and dtype of x",
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .in_place = true,
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs>(kName, kFields),
    .host = kHost};

}  // namespace
}  // namespace kernel::group_norm

void group_norm(const TensorView& out, const TensorView& x, const GroupNormOptions& options) {
  op::run(kernel::group_norm::kDefinition, out, {x}, options);
}

Tensor group_norm(const TensorView& x, const GroupNormOptions& options) {
  return std::move(op::allocate(kernel::group_norm::kDefinition, {x}, options)[0]);
}

op::OperatorList ops::group_norm() { return op::registered(kernel::group_norm::kDefinition); }

}  // namespace tensorcraft
