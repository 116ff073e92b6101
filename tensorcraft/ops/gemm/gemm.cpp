// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/gemm.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/tensor_matcher.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/gemm/maps.hpp"
#include "tensorcraft/ops/gemm/plan.h"
#include "tensorcraft/ops/gemm/problem.hpp"

#include <algorithm>
#include <array>

namespace tensorcraft {

template <>
struct op::EnumNames<Precision> {
  static constexpr std::array<std::string_view, 3> names = {"default", "tf32", "3xtf32"};
};

namespace kernel::gemm {
namespace {

using Options = GemmOptions;

static_assert(kMaxBatchRank == kMaxRank - 2);

constexpr std::string_view kSchedules[] = {"together", "ping_pong"};
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
                                   {"activation", op::EnumNames<Activation>::names},
                                   {"has_c"},
                                   {"has_bias"}};

Matrix matrix(const TensorView& t) {
  const int r = t.rank();
  Matrix x = matrix_of(t.data(), t.shape(r - 2), t.shape(r - 1), row_stride(t), col_stride(t));
  for (int i = 0; i < r - 2; ++i) x.batch_strides[i] = t.stride(i);
  return x;
}

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
  if (q.bias) {
    p.bias = q.bias->data();
    p.bias_stride = q.bias->stride(0);
  }
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
           .has_bias = q.bias.has_value(),
           .allow_tf32 = q.allow_tf32,
           .splits_tf32 = q.splits_tf32,
           .config = q.config},
          {q.a.dtype(), q.d.dtype()}};
}

void complete(op::Plan& plan, std::string_view, const Problem& q, const DeviceInfo& device) {
  const auto call = rung_call(q);
  add_maps(plan, call.params, call.given, device);
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

DType result_dtype(const TensorView& a, const Options& o) {
  const DType dtype = o.out_dtype.value_or(a.dtype());
  if (dtype != a.dtype() && dtype != DType::float32)
    fail(ErrorKind::type, "gemm: out_dtype must be ", a.dtype(),
         " (the dtype of a) or float32, got ", dtype);
  return dtype;
}

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const Options& o) {
  check_rank("a", in[0]);
  check_rank("b", in[1]);
  Dims shape = result_batch(in[0], in[1]);
  shape.push_back(in[0].shape(in[0].rank() - (o.transpose_a ? 1 : 2)));
  shape.push_back(in[1].shape(in[1].rank() - (o.transpose_b ? 2 : 1)));
  return {{"out", result_dtype(in[0], o), shape}};
}

// Merges batch dimensions that the strides of all matrices let be one, and drops those of size 1.
void merge_batch(Problem& q) {
  std::array<TensorView*, 4> all{&q.d, &q.a, &q.b, q.c ? &*q.c : &q.d};
  Dims shape;
  std::array<Dims, 4> strides;
  for (int i = 0; i < q.batch_rank(); ++i) {
    if (q.d.shape(i) == 1) continue;
    bool joins = shape.rank() > 0;
    for (size_t t = 0; t < all.size() && joins; ++t)
      joins = strides[t].back() == all[t]->stride(i) * q.d.shape(i);
    if (joins)
      shape[shape.rank() - 1] *= q.d.shape(i);
    else
      shape.push_back(q.d.shape(i));
    for (size_t t = 0; t < all.size(); ++t) {
      if (joins)
        strides[t][shape.rank() - 1] = all[t]->stride(i);
      else
        strides[t].push_back(all[t]->stride(i));
    }
  }
  const auto merged = [&](const TensorView& t, Dims steps) {
    Dims sizes = shape;
    for (int i = t.rank() - 2; i < t.rank(); ++i) {
      sizes.push_back(t.shape(i));
      steps.push_back(t.stride(i));
    }
    return TensorView(t.data(), t.dtype(), sizes, steps, t.device());
  };
  if (q.c) q.c = merged(*q.c, strides[3]);
  q.a = merged(q.a, strides[1]);
  q.b = merged(q.b, strides[2]);
  q.d = merged(q.d, strides[0]);
}

// allow_tf32 is another word for a precision, so the two must say the same.
void check_precision(DType dtype, const Options& o) {
  if (o.precision == Precision::three_tf32 && dtype != DType::float32)
    fail(ErrorKind::type, "gemm: precision: \"3xtf32\" splits float32 operands, and a is ", dtype,
         "; leave precision out, or convert a and b with astype");
  if (o.allow_tf32 && o.precision != Precision::standard &&
      *o.allow_tf32 != (o.precision == Precision::tf32))
    fail(ErrorKind::value, "gemm: allow_tf32 is ", *o.allow_tf32 ? "True" : "False",
         " and precision is ", op::EnumNames<Precision>::names[size_t(o.precision)],
         "; give one of them");
}

bool may_round(const Options& o) {
  if (o.precision != Precision::standard) return o.precision == Precision::tf32;
  return o.allow_tf32.value_or(config().allow_tf32);
}

Problem check(const op::Call<Options>& call) {
  const TensorView &a = call.in(0), &b = call.in(1), &out = call.out();
  const Options& o = call.options;
  SymbolicSize m("m"), n("n"), k("k");
  SymbolicDType dtype({DType::float32, DType::float16, DType::bfloat16});
  SymbolicDType result;
  if (o.out_dtype || a.dtype() == DType::float32)
    result.set_options({result_dtype(a, o)});
  else
    result.set_options({a.dtype(), DType::float32});
  check_precision(a.dtype(), o);
  o.transpose_a ? match("a", a, k, m, dtype) : match("a", a, m, k, dtype);
  o.transpose_b ? match("b", b, n, k, dtype) : match("b", b, k, n, dtype);
  match("out", out, m, n, result);
  const Dims batch = result_batch(a, b);
  if (batch_shape(out) != batch)
    fail(ErrorKind::value, "gemm: out: expected the leading dimensions ", batch,
         " of a and b, got shape ", out.shape());
  if (o.c) match("c", *o.c, m, n, result);
  if (o.bias)
    TensorMatcher({n}).with_any_strides().with_dtype(dtype).verify(*o.bias, "gemm", "bias");
  const float beta = o.beta.value_or(o.c ? 1.0f : 0.0f);
  if (beta != 0 && !o.c)
    fail(ErrorKind::value, "gemm: beta is ", beta, " but there is no c to scale; give c");

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
            .alpha = o.alpha,
            .beta = beta,
            .activation = o.activation,
            .allow_tf32 = may_round(o),
            .splits_tf32 = o.precision == Precision::three_tf32,
            .config = o.config.value_or(GemmConfig{})};
  if (beta != 0) q.c = spread(*o.c);
  merge_batch(q);
  return q;
}

op::Cost cost(const Problem& q) {
  const double outputs = double(q.d.size());
  double bytes = double(q.d.nbytes()) * (q.c ? 2 : 1);
  // A broadcast operand is read once.
  for (const TensorView* t : {&q.a, &q.b}) {
    double elements = double(dtype_bytes(t->dtype()));
    for (int i = 0; i < t->rank(); ++i) elements *= t->stride(i) ? double(t->shape(i)) : 1.0;
    bytes += elements;
  }
  return {.bytes = bytes,
          .flops = 2 * outputs * double(q.k()),
          .may_round_to_tf32 = (q.allow_tf32 || q.splits_tf32) && q.a.dtype() == DType::float32};
}

const op::Definition<Problem, Options> kDefinition{
    .name = "gemm",
    .group = "matrix",
    .summary = "Matrix product with scaling, addition, bias and activation.",
    .details =
        "out = activation(alpha a b + beta c + bias) for a [..., m, k] and b [..., k, n] of one "
        "dtype: float32, float16 or bfloat16. Leading dimensions broadcast as in NumPy, any "
        "strides are "
        "taken, and sizes may be 0: k = 0 gives activation(beta c + bias). Sums are float32 and "
        "rounded once to the dtype of out. c is not read if beta is 0, so it may hold NaN then. "
        "float32 operands are rounded to tf32 only if precision is \"tf32\" or, by default, "
        "allow_tf32 or the configuration says so. With \"3xtf32\" tensor cores multiply float32 "
        "as two parts of tf32: sums of products are within 2^-20 of the sum of their magnitudes, "
        "besides the additions in float32, and an infinity may become NaN. "
        "config fixes parts of the kernel's tile and is refused if no variant has such a tile; on "
        "the CPU it has no effect.",
    .aliases = {"matmul"},
    .inputs = {{"a", "left matrices, [..., m, k]"}, {"b", "right matrices, [..., k, n]"}},
    .options = {op::option("c", &Options::c, "added matrices, [..., m, n], dtype of the result"),
                op::option("alpha", &Options::alpha, "factor of the product"),
                op::option("beta", &Options::beta, "factor of c; 1 if c is given"),
                op::option("bias", &Options::bias, "added to every row, [n], dtype of a"),
                op::option("activation", &Options::activation, "applied to the sum"),
                op::option("transpose_a", &Options::transpose_a, "a is stored as [..., k, m]"),
                op::option("transpose_b", &Options::transpose_b, "b is stored as [..., n, k]"),
                op::option("out_dtype", &Options::out_dtype, "the dtype of a, or float32"),
                op::option("allow_tf32", &Options::allow_tf32,
                           "float32 operands may be rounded to tf32, as precision=\"tf32\""),
                op::option("precision", &Options::precision,
                           "of float32 products; 3xtf32: three products of tf32 parts"),
                op::option("config", &Options::config,
                           "what of the kernel's tile is fixed: tile_m, tile_n, tile_k, warp_m, "
                           "warp_n, stages, cluster_m, cluster_n, consumers, schedule; explain "
                           "lists the tiles of a variant")},
    .out_doc = "[..., m, n], the leading dimensions of a and b broadcast",
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs, instances, complete>("gemm", kFields),
    .host = kHost};

}  // namespace

}  // namespace kernel::gemm

void gemm(const TensorView& out, const TensorView& a, const TensorView& b,
          const GemmOptions& options) {
  op::run(kernel::gemm::kDefinition, out, {a, b}, options);
}

Tensor gemm(const TensorView& a, const TensorView& b, const GemmOptions& options) {
  return std::move(op::allocate(kernel::gemm::kDefinition, {a, b}, options)[0]);
}

op::OperatorList ops::gemm() { return op::registered(kernel::gemm::kDefinition); }

}  // namespace tensorcraft
