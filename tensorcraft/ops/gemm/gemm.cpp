// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/gemm.hpp"

#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/tensor_matcher.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/op/expression/operands.hpp"
#include "tensorcraft/ops/gemm/gemm_expression.hpp"
#include "tensorcraft/ops/gemm/gemm_check.hpp"
#include "tensorcraft/ops/gemm/groups/groups.hpp"
#include "tensorcraft/ops/gemm/line_sums.hpp"
#include "tensorcraft/ops/gemm/maps.hpp"
#include "tensorcraft/ops/gemm/plan.h"
#include "tensorcraft/ops/gemm/problem.hpp"
#include "tensorcraft/ops/gemm/result.hpp"

#include <algorithm>
#include <array>

namespace tensorcraft {

template <>
struct op::EnumNames<Precision> {
  static constexpr std::array<std::string_view, 3> names = {"default", "tf32", "3xtf32"};
};
template <>
struct op::EnumNames<Accumulation> {
  static constexpr std::array<std::string_view, 2> names = {"promoted", "fast"};
};

namespace kernel::gemm {

Matrix matrix(const TensorView& t) {
  const int r = t.rank();
  Matrix x = matrix_of(t.data(), t.shape(r - 2), t.shape(r - 1), row_stride(t), col_stride(t));
  for (int i = 0; i < r - 2; ++i) x.batch_strides[i] = t.stride(i);
  return x;
}

namespace {

using Options = GemmOptions;

static_assert(kMaxBatchRank == kMaxRank - 2);

constexpr std::string_view kSchedules[] = {"together", "ping_pong"};
constexpr std::string_view kExpressions[] = {"none", "compiled", "interpreted"};
constexpr std::string_view kPromotions[] = {"none", "plain", "by_column", "by_square"};
constexpr ConfigField kFields[] = {{"block_m"},
                                   {"block_n"},
                                   {"block_k"},
                                   {"warp_m"},
                                   {"warp_n"},
                                   {"thread_m"},
                                   {"thread_n"},
                                   {"threads"},
                                   {"stages"},
                                   {"cluster_m"},
                                   {"cluster_n"},
                                   {"consumers"},
                                   {"schedule", kSchedules},
                                   {"swap"},
                                   {"split"},
                                   {"slots"},
                                   {"parts"},
                                   {"a_layout", kLayouts},
                                   {"b_layout", kLayouts},
                                   {"a_vector"},
                                   {"b_vector"},
                                   {"d_vector"},
                                   {"c_vector"},
                                   {"activation", op::EnumNames<Activation>::names},
                                   {"has_c"},
                                   {"has_bias"},
                                   {"has_scales"},
                                   {"gated"},
                                   {"expression", kExpressions},
                                   {"promotion", kPromotions},
                                   {"has_groups"}};

Params params(const Problem& q) {
  Params p{.m = q.m(),
           .n = q.n(),
           .k = q.k(),
           .a = matrix(q.a),
           .b = matrix(q.b),
           .c = q.c ? matrix(*q.c) : Matrix{},
           .d = matrix(q.d),
           .alpha = q.alpha,
           .beta = q.beta,
           .batch_rank = q.batch_rank()};
  if (q.is_by_block()) p.scale_columns = q.promotion == Promotion::by_square ? kScaleBlock : 1;
  if (q.bias) {
    p.bias = q.bias->data();
    p.bias_stride = q.bias->stride(0);
  }
  if (q.a_scale) {
    const TensorView scale = q.of_entry(*q.a_scale);
    p.a_scale = scale.data_as<const float>();
    p.a_scale_stride = scale.rank() ? scale.stride(0) : 0;
    p.a_scale_step = q.is_by_block() ? scale.stride(1) : 0;
  }
  if (q.b_scale) {
    const TensorView scale = q.of_entry(*q.b_scale);
    p.b_scale = scale.data_as<const float>();
    p.b_scale_stride = scale.rank() ? scale.stride(scale.rank() - 1) : 0;
    p.b_scale_step = q.is_by_block() ? scale.stride(0) : 0;
  }
  p.zero = zero_points(q);
  if (q.out_scale) p.out_scale = q.out_scale->data_as<const float>();
  for (int i = 0; i < q.batch_rank(); ++i) p.batch_shape[i] = uint32_t(q.d.shape(i));
  return p;
}

op::RungCall<Params, Given> rung_call(const Problem& q) {
  return {params(q),
          {.operand_bytes = int(dtype_bytes(q.a.dtype())),
           .result_bytes = int(dtype_bytes(q.d.dtype())),
           .batch = q.batch(),
           .activation = q.activation,
           .has_c = q.c.has_value(),
           .has_scales = dtype_bytes(q.a.dtype()) == 1 ? q.has_line_scales() || q.has_zeros()
                                                       : q.has_scales(),
           .gated = q.gated,
           .has_expression = q.expression.has_value(),
           .has_bias = !q.bias            ? 0
                       : q.has_row_bias() ? kByRow
                                          : kByColumn,
           .allow_tf32 = q.allow_tf32,
           .splits_tf32 = q.splits_tf32,
           .batch_invariant = q.batch_invariant,
           .config = q.config,
           .promotion = q.promotion,
           .is_integer = q.a.dtype() == DType::int8,
           .grouped = q.groups ? q.groups->along : 0,
           .are_groups_apart = q.groups && q.groups->kind == GroupArray::counts,
           .expected_rows = q.groups ? q.groups->expected_rows : 0},
          {q.a.dtype(), q.d.dtype()}};
}

void complete(op::Plan& plan, std::string_view, const Problem& q, const DeviceInfo& device) {
  const auto call = rung_call(q);
  if (q.has_zeros()) add_line_sums(plan, call.params, call.given);
  const auto give = [&](const auto& params) {
    plan.set_params(plan.main_index(), params);
    add_maps(plan, params, call.given, device);
  };
  if (q.groups)
    add_groups(plan, q, call.params, call.given, device);
  else if (!q.expression)
    add_maps(plan, call.params, call.given, device);
  else if (set_expression(plan.main(), q, device) == Expression::interpreted)
    give(interpreted_params(q, call.params));
  else
    give(expression_params(q, call.params));
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "onednn",
     .idea = "oneDNN's matmul primitive",
     .run = onednn,
     .refusal = onednn_refusal},
    {.name = "cpu", .idea = "float, packed blocks over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

void check_rank(std::string_view name, const TensorView& t) {
  if (t.rank() < 2)
    fail(ErrorKind::value, "gemm: ", name, ": expected at least 2 dimensions, got shape ",
         t.shape(), "; add one with expand_dims");
}

Dims batch_shape(const TensorView& t) {
  return Dims(std::span(t.shape().begin(), size_t(t.rank() - 2)));
}

// Any batch, then rows x cols.
void match(std::string_view name, const TensorView& t, SizeRef rows, SizeRef cols,
           SymbolicDType& dtype) {
  check_rank(name, t);
  std::array<SizeRef, kMaxRank> shape;
  shape[size_t(t.rank() - 2)] = rows;
  shape[size_t(t.rank() - 1)] = cols;
  TensorMatcher(std::span<const SizeRef>(shape.data(), size_t(t.rank())))
      .with_any_strides()
      .with_dtype(dtype)
      .verify(t, "gemm", name);
}

TensorView oriented(const TensorView& t, bool transposed) {
  return transposed ? t.transpose(-2, -1) : t;
}

Dims result_batch(const TensorView& a, const TensorView& b) {
  const Dims x = batch_shape(a), y = batch_shape(b);
  for (int i = 1; i <= std::min(x.rank(), y.rank()); ++i) {
    const int64_t p = x[x.rank() - i], q = y[y.rank() - i];
    if (p != q && p != 1 && q != 1)
      fail(ErrorKind::value, "gemm: a and b: the leading dimensions do not broadcast: a has shape ",
           a.shape(), ", b ", b.shape());
  }
  return broadcast_shapes(x, y);
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options& o) {
  check_rank("a", in[0]);
  check_rank("b", in[1]);
  Dims shape = result_batch(in[0], in[1]);
  shape.push_back(in[0].shape(in[0].rank() - (o.transpose_a ? 1 : 2)));
  const int64_t columns = in[1].shape(in[1].rank() - (o.transpose_b ? 2 : 1));
  shape.push_back(result_columns("gemm", columns, o.gated));
  return {{"out", product_dtype(in[0], o.out_dtype), shape}};
}

// allow_tf32 is another word for a precision, so the two must say the same.
void check_precision(DType dtype, const Options& o) {
  if (o.precision == Precision::three_tf32 && dtype != DType::float32)
    fail(ErrorKind::type, "gemm: precision: \"3xtf32\" takes float32 operands, and a is ", dtype,
         "; leave precision out, or convert a and b with astype");
  if (o.allow_tf32 && o.precision != Precision::standard &&
      *o.allow_tf32 != (o.precision == Precision::tf32))
    fail(ErrorKind::value, "gemm: allow_tf32 is ", *o.allow_tf32 ? "True" : "False",
         " and precision is ", op::EnumNames<Precision>::names[size_t(o.precision)],
         "; give one of them");
}

std::vector<std::string_view> keywords();  // the names of all options

Problem check(const op::Call<Options>& call) {
  const TensorView &a = call.in(0), &b = call.in(1), &out = call.out();
  const Options& o = call.options;
  SymbolicSize m("m"), n(o.gated == Gate::none ? "n" : "2 n"), k("k");
  SymbolicDType dtype({DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn,
                       DType::float8_e5m2, DType::int8});
  SymbolicDType result;
  o.out_dtype ? result.set_options({product_dtype(a, o.out_dtype)})
              : result.set_options(product_dtypes(a.dtype()));
  check_precision(a.dtype(), o);
  o.transpose_a ? match("a", a, k, m, dtype) : match("a", a, m, k, dtype);
  o.transpose_b ? match("b", b, n, k, dtype) : match("b", b, k, n, dtype);
  check_gate(o);
  const int64_t columns = result_columns("gemm", n.unwrap(), o.gated);
  o.gated == Gate::none ? match("out", out, m, n, result) : match("out", out, m, columns, result);
  const Dims batch = result_batch(a, b);
  if (batch_shape(out) != batch)
    fail(ErrorKind::value, "gemm: out: expected the leading dimensions ", batch,
         " of a and b, got shape ", out.shape());
  if (o.c) match("c", *o.c, m, n, result);
  check_result(out.dtype(), o);
  check_bias(o.bias, m, n, a.dtype(), out.dtype());
  const float beta = o.beta.value_or(o.c ? 1.0f : 0.0f);
  if (beta != 0 && !o.c)
    fail(ErrorKind::value, "gemm: beta is ", beta, " but there is no c to scale; give c");

  const Zeros zeros = zeros_of(o, a.dtype(), m, n);
  const Scales scales = scales_of(o, a.dtype(), m, n, k.unwrap());
  const auto spread = [&](const TensorView& t) {
    Dims shape = batch;
    shape.push_back(t.shape(t.rank() - 2));
    shape.push_back(t.shape(t.rank() - 1));
    return t.broadcast_to(shape);
  };
  Problem q{.d = out,
            .a = spread(oriented(a, o.transpose_a)),
            .b = spread(oriented(b, o.transpose_b)),
            .c = std::nullopt,
            .bias = o.bias,
            .a_scale = scales.a,
            .b_scale = scales.b,
            .out_scale = out_scale_of(out.dtype(), o),
            .a_zero = zeros.a,
            .b_zero = zeros.b,
            .promotion = scales.promotion,
            .alpha = o.alpha,
            .beta = beta,
            .activation = o.gated == Gate::none ? o.activation : activation_of(o.gated),
            .gated = o.gated != Gate::none,
            .expression = expression_of(o, call.inputs.subspan(2), out.shape(), keywords),
            .allow_tf32 = may_round(o),
            .splits_tf32 = o.precision == Precision::three_tf32,
            .batch_invariant = o.batch_invariant,
            .config = o.config.value_or(GemmConfig{})};
  if (beta != 0) try {
      q.c = spread(*o.c);
    } catch (const Error&) {
      fail(ErrorKind::value, "gemm: c: expected a shape that broadcasts to ", out.shape(), ", got ",
           o.c->shape());
    }
  merge_batch(q);
  return q;
}

op::Cost cost(const Problem& q) {
  const double outputs = double(q.d.size());
  double bytes = double(q.d.nbytes()) * (q.c ? 2 : 1);
  // A broadcast operand is read once.
  const auto distinct = [](const TensorView& t) {
    double elements = double(dtype_bytes(t.dtype()));
    for (int i = 0; i < t.rank(); ++i) elements *= t.stride(i) ? double(t.shape(i)) : 1.0;
    return elements;
  };
  bytes += distinct(q.a) + distinct(q.b);
  if (q.expression)
    for (const TensorView& t : q.expression->arrays) bytes += distinct(t);
  return {.bytes = bytes,
          .flops = 2 * outputs * double(q.k()) * (q.gated ? 2 : 1),
          .may_round_to_tf32 = (q.allow_tf32 || q.splits_tf32) && q.a.dtype() == DType::float32,
          .m = q.m(),
          .n = q.n(),
          .k = q.k()};
}

std::vector<op::Parameter> inputs() {
  std::vector<op::Parameter> all{{"a", "left matrices, [..., m, k]"},
                                 {"b", "right matrices, [..., k, n]"}};
  for (const std::string_view name : {"x1", "x2", "x3", "x4", "x5", "x6", "x7"}) {
    op::Parameter p{name, "an array of the epilogue"};
    p.optional = p.named = true;
    all.push_back(p);
  }
  return all;
}

const op::Definition<Problem, Options> kDefinition{
    .name = "gemm",
    .group = "matrix",
    .summary = "Matrix product with scaling, addition, bias, activation and gates.",
    .details =
        "out = activation(alpha a_scale b_scale a b + beta c + bias) for a [..., m, k] and b [..., "
        "k, n] of one dtype: float32, float16, bfloat16, float8 or int8. Leading dimensions "
        "broadcast as in NumPy, any strides are taken, and sizes may be 0: k = 0 gives "
        "activation(beta c + bias). Sums are float32 and rounded once to the dtype of out. Those "
        "of int8 are int32, which wraps, and an int32 out is these sums alone. Tensor cores keep "
        "13 bits of a sum of float8: with accumulation=\"promoted\" the sums of 128 elements along "
        "k are added in float32, with \"fast\" they are not. Scales by block are one number for "
        "128 elements of a row of a, and for 128 of a column of b or for a square of 128 x 128. "
        "They lie as their operand does, so quantize(x, scheme=\"block\") gives those of a, and "
        "with block_shape=\"128x128\" those of a b that is stored as [n, k]. c is not read if beta "
        "is 0, so it may hold NaN then. int8 operands with zero points, a_zero and b_zero, are a - "
        "a_zero and b - b_zero; int32 sums stay exact. A result of 8 bits is out_scale times all "
        "this, epilogue included, rounded to nearest even and saturated: a NaN is NaN in float8 "
        "and 0 in int8. If gated, b has 2 n columns and out = gated(x[:, :n]) x[:, n:] for x = "
        "alpha a_scale b_scale a b + bias. epilogue is an expression in the language of "
        "elementwise of all this, the float32 x, and of keyword arguments: up to seven arrays, "
        "which broadcast to the result, and numbers. float32 operands are rounded to tf32 only if "
        "precision is \"tf32\" or, by default, allow_tf32 or the configuration says so. With "
        "\"3xtf32\" tensor cores multiply float32 as two parts of tf32: sums of products are "
        "within 2^-20 of the sum of their magnitudes, besides the additions in float32, and an "
        "infinity may become NaN. If batch_invariant, the variant, its tile and the order of every "
        "sum are the same for every m and every batch, so that a row of a gives the same bits in "
        "any company; the dtypes, strides of one kind, n and k may still matter. config fixes "
        "parts of the kernel's tile and is refused if no variant has such a tile; on the CPU it "
        "has no effect.",
    .aliases = {"matmul"},
    .inputs = inputs(),
    .options =
        {op::option("c", &Options::c, "added matrices, [..., m, n], dtype of the result"),
         op::option("alpha", &Options::alpha, "factor of the product"),
         op::option("beta", &Options::beta, "factor of c; 1 if c is given"),
         op::option("bias", &Options::bias,
                    "added to every row, [n], or to every column, [m, 1]; dtype of a, of "
                    "the result if a has 8 bits, or of a_scale if that has too"),
         op::option("activation", &Options::activation, "applied to the sum"),
         op::option("transpose_a", &Options::transpose_a, "a is stored as [..., k, m]"),
         op::option("transpose_b", &Options::transpose_b, "b is stored as [..., n, k]"),
         op::option("a_scale", &Options::a_scale,
                    op::takes(op::kFloat32,
                              "factor of the product, or one a row, [m, 1], or of float8 one for "
                              "128 elements of a row, [m, blocks]; as a lies; %")),
         op::option("b_scale", &Options::b_scale,
                    op::takes(op::kFloat32,
                              "factor of the product, or one a column, [n] or [1, n], or of float8 "
                              "one for 128 elements of a column, [blocks, n], or for squares, "
                              "[blocks, squares]; as b lies; %")),
         op::option("a_zero", &Options::a_zero,
                    op::takes(op::kInt32,
                              "the integer that means 0 in an int8 a, or one a row, [m, 1]; %")),
         op::option(
             "b_zero", &Options::b_zero,
             op::takes(op::kInt32, "that of an int8 b, or one a column, in a shape of b_scale; %")),
         op::option("accumulation", &Options::accumulation,
                    "of float8 products: promoted to float32 after 128 along k, or fast"),
         op::option("gated", &Options::gated,
                    "b is [..., k, 2 n], gates first: activated, they multiply the rest"),
         op::option("epilogue", &Options::epilogue,
                    "an expression of the finished sum, x, and of arrays and numbers by the "
                    "names in it"),
         op::option("operands", &Options::operands, "those arrays and numbers"),
         op::option("out_dtype", &Options::out_dtype,
                    "the dtype of a, float32, of 16 bits if a is, or of 8 bits; of float8 "
                    "bfloat16, of int8 int32, or another"),
         op::option("out_scale", &Options::out_scale,
                    op::takes(op::kFloat32,
                              "factor of a result of 8 bits before it is rounded; one number, %")),
         op::option("allow_tf32", &Options::allow_tf32,
                    "float32 operands may be rounded to tf32, as precision=\"tf32\""),
         op::option("precision", &Options::precision,
                    "of float32 products; 3xtf32: three products of tf32 parts"),
         op::forbids_tuning(
             op::option("batch_invariant", &Options::batch_invariant,
                        "a row's bits depend on neither m nor the leading dimensions")),
         op::option("config", &Options::config,
                    "what of the kernel's tile is fixed: tile_m, tile_n, tile_k, warp_m, "
                    "warp_n, stages, cluster_m, cluster_n, consumers, split, schedule; "
                    "explain lists the tiles of a variant")},
    .out_doc = "[..., m, n], the leading dimensions of a and b broadcast",
    .dtypes = {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn,
               DType::float8_e5m2, DType::int8},
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = ladder(),
    .host = kHost};

std::vector<std::string_view> keywords() {
  std::vector<std::string_view> names;
  for (const auto& option : kDefinition.options) names.push_back(option.parameter.name);
  return names;
}

op::Ladder<Problem>* make_own_ladder() {
  return new auto(op::make_ladder<rung_call, kRungs, complete, config_option>("gemm", kFields));
}

}  // namespace

const op::Ladder<Problem>& ladder() {
  static constinit FirstMade<const op::Ladder<Problem>, make_own_ladder> all;
  return *all;
}

}  // namespace kernel::gemm

void gemm(const TensorView& out, const TensorView& a, const TensorView& b,
          const GemmOptions& options) {
  op::run(kernel::gemm::kDefinition, out, {a, b}, options);
}

Tensor gemm(const TensorView& a, const TensorView& b, const GemmOptions& options) {
  return std::move(op::allocate(kernel::gemm::kDefinition, {a, b}, options)[0]);
}

void gemm(const TensorView& out, const TensorView& a, const TensorView& b,
          std::string_view epilogue, NamedOperands operands, const GemmOptions& options) {
  const expression::NamedArguments call(operands, {a, b});
  GemmOptions all = options;
  all.epilogue = epilogue;
  all.operands = call.named;
  op::run(kernel::gemm::kDefinition, std::span(&out, 1), call.arrays, all);
}

Tensor gemm(const TensorView& a, const TensorView& b, std::string_view epilogue,
            NamedOperands operands, const GemmOptions& options) {
  const expression::NamedArguments call(operands, {a, b});
  GemmOptions all = options;
  all.epilogue = epilogue;
  all.operands = call.named;
  return std::move(op::allocate(kernel::gemm::kDefinition, call.arrays, all)[0]);
}

op::OperatorList ops::gemm() {
  op::OperatorList all = op::registered(kernel::gemm::kDefinition);
  std::ranges::copy(kernel::gemm::grouped_operators(), std::back_inserter(all));
  return all;
}

}  // namespace tensorcraft
