// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/groups/grouped_gemm.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/tensor_matcher.hpp"
#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/gemm/groups/group_scales.hpp"
#include "tensorcraft/ops/gemm/plan.h"
#include "tensorcraft/ops/gemm/problem.hpp"
#include "tensorcraft/ops/gemm/result.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace tensorcraft {
namespace kernel::gemm {
namespace {

constexpr std::string_view kGroupedName = "grouped_gemm", kMaskedName = "masked_gemm";

constexpr DType kDTypes[] = {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn,
                             DType::float8_e5m2};

// Names the operator that takes these options.
template <class Options>
constexpr std::string_view kNameOf = kGroupedName;
template <>
constexpr std::string_view kNameOf<MaskedGemmOptions> = kMaskedName;

void check_axes(std::string_view op, std::string_view name, const TensorView& t, int rank) {
  if (t.rank() != rank)
    fail(ErrorKind::value, op, ": ", name, ": expected ", rank, " dimensions, got shape ",
         t.shape());
}

// A gated product has the activation of its gate.
template <class Options>
Activation checked_activation(const Options& o) {
  if (o.gated == Gate::none) return o.activation;
  if (o.activation != Activation::none)
    fail(ErrorKind::value, kNameOf<Options>,
         ": gated has an activation of its own; leave activation out");
  return activation_of(o.gated);
}

// The groups along k, as many as the array says.
int64_t groups_along_k(const GroupedGemmOptions& o) {
  if (o.ids || o.offsets.has_value() == o.sizes.has_value())
    fail(ErrorKind::value, kGroupedName,
         ": b is one matrix, so groups are along k; expected one of offsets and sizes, which say "
         "how many there are");
  const TensorView& array = o.offsets ? *o.offsets : *o.sizes;
  check_axes(kGroupedName, o.offsets ? "offsets" : "sizes", array, 1);
  return o.offsets ? std::max<int64_t>(array.shape(0) - 1, 0) : array.shape(0);
}

// b has no matrix for each group: the groups are along k, and each has a result.
std::vector<op::OutputSpec> infer_along_k(std::span<const TensorView> in,
                                          const GroupedGemmOptions& o) {
  const TensorView &a = in[0], &b = in[1];
  return {{"out",
           result_dtype(kGroupedName, a, o.out_dtype),
           {groups_along_k(o), a.shape(0), b.shape(o.transpose_b ? 0 : 1)}}};
}

template <class Options>
std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options& o) {
  constexpr std::string_view op = kNameOf<Options>;
  check_axes(op, "a", in[0], op == kMaskedName ? 3 : 2);
  if constexpr (op == kGroupedName)
    if (in[1].rank() == 2) return infer_along_k(in, o);
  check_axes(op, "b", in[1], 3);
  Dims shape = in[0].shape();
  shape[shape.rank() - 1] = result_columns(op, in[1].shape(o.transpose_b ? 1 : 2), o.gated);
  return {{"out", result_dtype(op, in[0], o.out_dtype), shape}};
}

// A problem that lacks its groups.
template <class Options>
Problem problem_of(const Options& o, const TensorView& d, const TensorView& a,
                   const TensorView& b) {
  return {.d = d,
          .a = a,
          .b = b,
          .c = std::nullopt,
          .bias = std::nullopt,
          .a_scale = std::nullopt,
          .b_scale = std::nullopt,
          .out_scale = std::nullopt,
          .a_zero = std::nullopt,
          .b_zero = std::nullopt,
          .alpha = 1,
          .beta = 0,
          .activation = checked_activation(o),
          .gated = o.gated != Gate::none,
          .expression = std::nullopt,
          .allow_tf32 = o.allow_tf32.value_or(config().allow_tf32),
          .splits_tf32 = false,
          .batch_invariant = false,
          .config = o.config.value_or(GemmConfig{}),
          .groups = std::nullopt};
}

// Repeats the matrix for each group.
TensorView of_each(const TensorView& t, int64_t groups) {
  return t.at(t.data(), {groups, t.shape(0), t.shape(1)}, {0, t.stride(0), t.stride(1)});
}

// The sizes of a call, of which a or out may have a leading axis of groups.
struct Sizes {
  SymbolicSize groups{"groups"}, rows{"rows"}, k{"k"}, columns{"n"};
};

// Checks a, b, out and scales; the problem lacks its groups.
template <class Options>
Problem checked(const op::Call<Options>& call, Sizes& sizes) {
  constexpr std::string_view op = kNameOf<Options>;
  const TensorView &a = call.in(0), &b = call.in(1), &out = call.out();
  const Options& o = call.options;
  const std::vector<op::OutputSpec> specs = infer(call.inputs, o);
  SymbolicDType dtype(kDTypes);
  const std::array<SizeRef, 3> of_a{sizes.groups, sizes.rows, sizes.k};
  const bool has_groups = a.rank() == 3;
  TensorMatcher(std::span(of_a).subspan(has_groups ? 0 : 1))
      .with_any_strides()
      .with_dtype(dtype)
      .verify(a, op, "a");
  const TensorView right = o.transpose_b ? b.transpose(1, 2) : b;
  if (o.transpose_b)
    TensorMatcher({sizes.groups, sizes.columns, sizes.k})
        .with_any_strides()
        .with_dtype(dtype)
        .verify(b, op, "b");
  else
    TensorMatcher({sizes.groups, sizes.k, sizes.columns})
        .with_any_strides()
        .with_dtype(dtype)
        .verify(b, op, "b");
  op::check_like(op, "out", out, specs[0].dtype, specs[0].shape);
  if (sizes.rows.unwrap() > kMostGroupedRows)
    fail(ErrorKind::unsupported, op, ": a: ", sizes.rows.unwrap(),
         " rows are not supported, expected below 2^30; cut them into several calls");
  const int64_t groups = sizes.groups.unwrap();
  const Scales scales = group_scales({.op = op,
                                      .dtype = a.dtype(),
                                      .groups = groups,
                                      .rows = sizes.rows.unwrap(),
                                      .k = sizes.k.unwrap(),
                                      .columns = sizes.columns.unwrap(),
                                      .are_apart = has_groups,
                                      .transpose_b = o.transpose_b},
                                     o.a_scale, o.b_scale);
  // Rows of all groups are those of each: the kernels stay inside their group.
  Problem q = has_groups ? problem_of(o, out, a, right)
                         : problem_of(o, of_each(out, groups), of_each(a, groups), right);
  q.a_scale = scales.a;
  q.b_scale = scales.b;
  q.promotion = scales.promotion;
  return q;
}

TensorView checked_array(std::string_view op, std::string_view name, const TensorView& t,
                         int64_t size) {
  TensorMatcher({size})
      .with_any_strides()
      .with_dtype({DType::int32, DType::int64})
      .verify(t, op, name);
  return t;
}

RowGroups groups_of(const GroupedGemmOptions& o, int64_t groups, int64_t rows) {
  if (int(o.offsets.has_value()) + int(o.sizes.has_value()) + int(o.ids.has_value()) != 1)
    fail(ErrorKind::value, kGroupedName,
         ": expected one of offsets, sizes and ids, which say what rows a group has");
  const int64_t expected = groups ? div_ceil(rows, groups) : 0;
  if (o.offsets)
    return {GroupArray::offsets, checked_array(kGroupedName, "offsets", *o.offsets, groups + 1),
            expected};
  if (o.sizes)
    return {GroupArray::sizes, checked_array(kGroupedName, "sizes", *o.sizes, groups), expected};
  return {GroupArray::ids, checked_array(kGroupedName, "ids", *o.ids, rows), expected};
}

Problem check_along_k(const op::Call<GroupedGemmOptions>& call) {
  const GroupedGemmOptions& o = call.options;
  const TensorView &a = call.in(0), &b = call.in(1), &out = call.out();
  const op::OutputSpec spec = infer(call.inputs, o)[0];
  if (o.gated != Gate::none)
    fail(ErrorKind::value, kGroupedName,
         ": gated is for groups of rows; groups along k have none: leave it out");
  if (o.a_scale || o.b_scale)
    fail(ErrorKind::value, kGroupedName, ": ", o.a_scale ? "a_scale" : "b_scale",
         " is for groups of rows; groups along k have none: leave it out");
  SymbolicDType dtype({DType::float32, DType::float16, DType::bfloat16});
  SymbolicSize k("k");
  TensorMatcher({kAnySize, k}).with_any_strides().with_dtype(dtype).verify(a, kGroupedName, "a");
  const TensorView right = o.transpose_b ? b.transpose(0, 1) : b;
  TensorMatcher({k, kAnySize})
      .with_any_strides()
      .with_dtype(dtype)
      .verify(right, kGroupedName, "b");
  op::check_like(kGroupedName, "out", out, spec.dtype, spec.shape);
  if (k.unwrap() > kMostGroupedRows)
    fail(ErrorKind::unsupported, kGroupedName, ": b: ", k.unwrap(),
         " rows are not supported, expected below 2^30; cut them into several calls");
  const int64_t groups = spec.shape[0];
  Problem q = problem_of(o, out, of_each(a, groups), of_each(right, groups));
  const bool by_offsets = o.offsets.has_value();
  q.groups = {by_offsets ? GroupArray::offsets : GroupArray::sizes,
              by_offsets ? checked_array(kGroupedName, "offsets", *o.offsets, groups + 1)
                         : checked_array(kGroupedName, "sizes", *o.sizes, groups),
              groups ? div_ceil(k.unwrap(), groups) : 0, kGroupsOfK};
  return q;
}

Problem check_grouped(const op::Call<GroupedGemmOptions>& call) {
  if (call.in(1).rank() == 2) return check_along_k(call);
  Sizes sizes;
  Problem q = checked(call, sizes);
  q.groups = groups_of(call.options, sizes.groups.unwrap(), sizes.rows.unwrap());
  return q;
}

Problem check_masked(const op::Call<MaskedGemmOptions>& call) {
  Sizes sizes;
  Problem q = checked(call, sizes);
  const int64_t rows = sizes.rows.unwrap(), expected = call.options.expected_rows.value_or(rows);
  if (expected < 0)
    fail(ErrorKind::value, kMaskedName, ": expected_rows must be at least 0, got ", expected);
  q.groups = {GroupArray::counts,
              checked_array(kMaskedName, "counts", call.in(2), sizes.groups.unwrap()), expected};
  return q;
}

// As if every row had a group, and of matrices as many as are expected: how many have one is known
// to the device alone.
op::Cost grouped_cost(const Problem& q) {
  const bool are_apart = q.groups->kind == GroupArray::counts;
  const double groups = are_apart ? double(q.batch()) : 1;
  const double rows = double(are_apart ? std::min(q.m(), q.groups->expected_rows) : q.m());
  const double outputs = groups * rows * double(q.n());
  // Along k there is a result for each group, and one b.
  const double results = q.groups->along_k() ? double(std::max<int64_t>(q.batch(), 1)) : 1;
  const double bytes = groups * rows * double(q.k()) * double(dtype_bytes(q.a.dtype())) +
                       results * outputs * double(dtype_bytes(q.d.dtype())) +
                       double(q.b.nbytes()) / results + double(q.groups->array.nbytes());
  return {.bytes = bytes,
          .flops = 2 * outputs * double(q.k()) * (q.gated ? 2 : 1),
          .may_round_to_tf32 = q.allow_tf32 && q.a.dtype() == DType::float32};
}

const op::HostVariant<Problem> kGroupedHost[] = {
    {.name = "cpu",
     .idea = "the product of one group after the other, each over all cores",
     .run = cpu_grouped},
    {.name = "reference", .idea = "double, obvious loops", .run = reference_grouped},
};

constexpr std::string_view kTransposeDoc = "b is stored as (groups, n, k)",
                           kActivationDoc = "applied to the sum",
                           kGatedDoc =
                               "b is (groups, k, 2 n), gates first; they are activated and "
                               "multiply the rest",
                           kDtypeDoc =
                               "the dtype of a, float32, or of 16 bits if a is; of float8 "
                               "bfloat16, or float16 or float32",
                           kTf32Doc = "float32 operands may be rounded to tf32",
                           kConfigDoc =
                               "what of the kernel's tile is fixed, as for gemm: tile_m, tile_n, "
                               "tile_k, warp_m, warp_n, stages, cluster_m, cluster_n, consumers, "
                               "schedule",
                           kBDoc = "matrices, (groups, k, n), any strides";

constexpr op::ParameterDoc kBScaleDoc =
    op::takes(op::kFloat32,
              "factor of float8 products: one number, one a group, (groups), or a column, (groups, "
              "n) or (groups, 1, n), or for squares of 128 x 128, (groups, blocks, squares), or "
              "for 128 elements of a column, (groups, blocks, n); as b lies; %");

const op::Definition<Problem, GroupedGemmOptions> kGrouped{
    .name = kGroupedName,
    .group = "matrix",
    .summary = "Products of groups of rows, each by a matrix of its own.",
    .details =
        "out[r, :] = activation(a[r, :] b[g, :, :]) for each row r of group g. One of offsets, "
        "sizes and ids says what rows a group has; it is read on the device alone, so nothing "
        "waits for the host. A group may be empty. Rows that no group has are not written. Any "
        "strides are taken, and sizes may be 0. a and b have one dtype: float32, float16, "
        "bfloat16 or float8; sums are float32 and rounded once. Those of float8 are promoted and "
        "times a_scale and b_scale, as in gemm: scales by block lie as their operand does, so "
        "quantize(x, scheme=\"block\") gives those of a, and with block_shape=\"128x128\" those "
        "of a b that is stored as (groups, n, k). If gated, b has 2 n columns and out = "
        "gated(x[:, :n]) x[:, n:] for the product x. On the CPU an array that says nothing of the "
        "kind is an error: offsets that descend or leave the rows, sizes that do, rows of one id "
        "that do not lie together. On other devices out has any values then, and nothing else is "
        "touched. moe_sort and moe_permute give offsets. If b is one matrix, (k, n), groups are "
        "along k, as gradients of weights need: out[g] = activation(a[:, part] b[part, :]) for the "
        "part of k that offsets or sizes give group g, and 0 before the activation if it is empty; "
        "out is (groups, m, n).",
    .inputs = {{"a", "rows of all groups, (rows, k), any strides"},
               {"b", "matrices, (groups, k, n), any strides; (k, n): groups are along k"}},
    .options = {op::option(
                    "offsets", &GroupedGemmOptions::offsets,
                    op::takes(
                        op::kIndexTypes,
                        "%, (groups + 1): group i has the rows offsets[i] to offsets[i + 1]")),
                op::option("sizes", &GroupedGemmOptions::sizes,
                           op::takes(op::kIndexTypes,
                                     "%, (groups): how many rows, one group behind the other")),
                op::option("ids", &GroupedGemmOptions::ids,
                           op::takes(op::kIndexTypes,
                                     "%, (rows): the group of each row, those of one group "
                                     "together; none if it is outside the groups")),
                op::option("transpose_b", &GroupedGemmOptions::transpose_b, kTransposeDoc),
                op::option("activation", &GroupedGemmOptions::activation, kActivationDoc),
                op::option("gated", &GroupedGemmOptions::gated, kGatedDoc),
                op::option("a_scale", &GroupedGemmOptions::a_scale,
                           op::takes(op::kFloat32,
                                     "factor of float8 products: one number, or one a row, (rows, "
                                     "1), or for 128 elements of a row, (rows, blocks); %")),
                op::option("b_scale", &GroupedGemmOptions::b_scale, kBScaleDoc),
                op::option("out_dtype", &GroupedGemmOptions::out_dtype, kDtypeDoc),
                op::option("allow_tf32", &GroupedGemmOptions::allow_tf32, kTf32Doc),
                op::option("config", &GroupedGemmOptions::config, kConfigDoc)},
    .out_doc = "(rows, n), of groups along k (groups, rows, n)",
    .dtypes = {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn,
               DType::float8_e5m2},
    .infer = infer<GroupedGemmOptions>,
    .check = check_grouped,
    .cost = grouped_cost,
    .ladder = ladder().only(kGroupedRungs),
    .host = kGroupedHost};

const op::Definition<Problem, MaskedGemmOptions> kMasked{
    .name = kMaskedName,
    .group = "matrix",
    .summary = "Products of the first rows of each matrix, as many as the device counts.",
    .details =
        "out[g, r, :] = activation(a[g, r, :] b[g, :, :]) for the rows r before counts[g], which "
        "the device alone reads. Rows from counts[g] on are neither used nor written. Any strides "
        "are taken, and sizes may be 0. a and b have one dtype: float32, float16, bfloat16 or "
        "float8; sums are float32 and rounded once. Those of float8 are promoted and times a_scale "
        "and b_scale, as in grouped_gemm. If gated, b has 2 n columns and out = gated(x[..., "
        ":n]) x[..., n:] for the product x. A count outside [0, rows] is an error on the CPU; "
        "other devices take the nearest that is inside.",
    .inputs = {{"a", "matrices, (groups, rows, k), any strides"},
               {"b", kBDoc},
               {"counts",
                op::takes(op::kIndexTypes, "%, (groups): how many rows of each, 0 to rows")}},
    .options = {op::option("transpose_b", &MaskedGemmOptions::transpose_b, kTransposeDoc),
                op::option("activation", &MaskedGemmOptions::activation, kActivationDoc),
                op::option("gated", &MaskedGemmOptions::gated, kGatedDoc),
                op::option(
                    "a_scale", &MaskedGemmOptions::a_scale,
                    op::takes(op::kFloat32,
                              "factor of float8 products: one number, or one a row, (groups, rows, "
                              "1), or for 128 elements of a row, (groups, rows, blocks); %")),
                op::option("b_scale", &MaskedGemmOptions::b_scale, kBScaleDoc),
                op::option("expected_rows", &MaskedGemmOptions::expected_rows,
                           "of a group on average, which the tile is chosen for; all if left out"),
                op::option("out_dtype", &MaskedGemmOptions::out_dtype, kDtypeDoc),
                op::option("allow_tf32", &MaskedGemmOptions::allow_tf32, kTf32Doc),
                op::option("config", &MaskedGemmOptions::config, kConfigDoc)},
    .out_doc = "(groups, rows, n)",
    .dtypes = {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn,
               DType::float8_e5m2},
    .infer = infer<MaskedGemmOptions>,
    .check = check_masked,
    .cost = grouped_cost,
    .ladder = ladder().only(kGroupedRungs),
    .host = kGroupedHost};

}  // namespace

op::OperatorList grouped_operators() { return op::registered(kGrouped, kMasked); }

}  // namespace kernel::gemm

void grouped_gemm(const TensorView& out, const TensorView& a, const TensorView& b,
                  const GroupedGemmOptions& options) {
  op::run(kernel::gemm::kGrouped, out, {a, b}, options);
}
Tensor grouped_gemm(const TensorView& a, const TensorView& b, const GroupedGemmOptions& options) {
  return std::move(op::allocate(kernel::gemm::kGrouped, {a, b}, options)[0]);
}
void masked_gemm(const TensorView& out, const TensorView& a, const TensorView& b,
                 const TensorView& counts, const MaskedGemmOptions& options) {
  op::run(kernel::gemm::kMasked, out, {a, b, counts}, options);
}
Tensor masked_gemm(const TensorView& a, const TensorView& b, const TensorView& counts,
                   const MaskedGemmOptions& options) {
  return std::move(op::allocate(kernel::gemm::kMasked, {a, b, counts}, options)[0]);
}

}  // namespace tensorcraft
