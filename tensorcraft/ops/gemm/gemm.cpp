// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/gemm.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/tensor_matcher.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/registry.hpp"
#include "tensorcraft/ops/gemm/gemm_cpu.hpp"
#include "tensorcraft/ops/gemm/gemm_plan.hpp"

#include <algorithm>

namespace tensorcraft {
namespace kernel::gemm {
namespace {

using Options = GemmOptions;

op::Verdict always(const Problem&, const DeviceInfo&) { return op::accept; }

const op::Variant<Problem> kTable[] = {
    {"tma",
     "mma.sync on tiles that the copy engine brings, A for two blocks of a cluster at once",
     DeviceType::cuda,
     accepts_tma,
     nullptr,
     plan_tma,
     {},
     {},
     suits_tma},
    {"swizzled", "mma.sync on swizzled tiles that cp.async brings through a ring of stages",
     DeviceType::cuda, accepts_swizzled, nullptr, plan_swizzled},
    {"tensor_core", "mma.sync on tiles that ldmatrix reads from two stages of shared memory",
     DeviceType::cuda, accepts_tensor_core, nullptr, plan_tensor_core},
    {"swizzled_tf32", "swizzled, float32 operands rounded to tf32", DeviceType::cuda,
     accepts_swizzled_tf32, nullptr, plan_swizzled_tf32},
    {"tensor_core_tf32", "tensor_core, float32 operands rounded to tf32", DeviceType::cuda,
     accepts_tensor_core_tf32, nullptr, plan_tensor_core_tf32},
    {"async", "cp.async fills a ring of stages while threads multiply 8 x 8 tiles",
     DeviceType::cuda, accepts_async, nullptr, plan_async, "double_buffer"},
    {"vectorized", "16-byte copies and shared loads around a register tile", DeviceType::cuda,
     accepts_vectorized, nullptr, plan_vectorized},
    {"thread_tiled", "each thread computes a tile of outputs from registers", DeviceType::cuda,
     accepts_any, nullptr, plan_thread_tiled},
    {"block_tiled", "a block shares its tiles of A and B in shared memory", DeviceType::cuda,
     accepts_any, nullptr, plan_block_tiled, "tiled"},
    {"coalesced", "one thread an output, neighbours along a row of D", DeviceType::cuda,
     accepts_any, nullptr, plan_coalesced},
    {"naive", "one thread an output, straight from global memory", DeviceType::cuda, accepts_any,
     nullptr, plan_naive},
    {"onednn", "oneDNN's matmul primitive", DeviceType::cpu, accepts_onednn, onednn},
    {"cpu", "float, packed blocks over all cores", DeviceType::cpu, always, cpu},
    {"reference", "double, obvious loops", DeviceType::cpu, always, reference},
};

void check_rank(std::string_view name, const TensorView& t) {
  if (t.rank() < 2)
    fail(ErrorKind::value, "gemm: ", name, " must have at least 2 axes, got shape ", t.shape(),
         "; add one with expand_dims");
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
      fail(ErrorKind::value, "gemm: the leading axes of a and b do not broadcast: a has shape ",
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
  o.transpose_a ? match("a", a, k, m, dtype) : match("a", a, m, k, dtype);
  o.transpose_b ? match("b", b, n, k, dtype) : match("b", b, k, n, dtype);
  match("out", out, m, n, result);
  const Dims batch = result_batch(a, b);
  if (batch_shape(out) != batch)
    fail(ErrorKind::value, "gemm: out: the leading axes must be ", batch,
         " as a and b give them, got shape ", out.shape());
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
            .allow_tf32 = o.allow_tf32.value_or(config().allow_tf32)};
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
          .may_round_to_tf32 = q.allow_tf32 && q.a.dtype() == DType::float32};
}

const op::Definition<Problem, Options> kDefinition{
    .name = "gemm",
    .group = "matrix",
    .summary = "Matrix product with scaling, addition, bias and activation.",
    .details =
        "out = activation(alpha a b + beta c + bias) for a [..., m, k] and b [..., k, n] of one "
        "dtype: float32, float16 or bfloat16. Leading axes broadcast as in NumPy, any strides are "
        "taken, and sizes may be 0: k = 0 gives activation(beta c + bias). Sums are float32 and "
        "rounded once to the dtype of out. c is not read where beta is 0, so it may hold NaN then. "
        "float32 operands are rounded to tf32 only where allow_tf32 or, without it, the "
        "configuration "
        "says so.",
    .aliases = {"matmul"},
    .inputs = {{"a", "left matrices, [..., m, k]"}, {"b", "right matrices, [..., k, n]"}},
    .options = {op::option("c", &Options::c, "added matrices, [..., m, n], dtype of the result"),
                op::option("alpha", &Options::alpha, "factor of the product"),
                op::option("beta", &Options::beta, "factor of c; 1 where c is given"),
                op::option("bias", &Options::bias, "added to every row, [n], dtype of a"),
                op::option("activation", &Options::activation, "applied to the sum"),
                op::option("transpose_a", &Options::transpose_a, "a is stored as [..., k, m]"),
                op::option("transpose_b", &Options::transpose_b, "b is stored as [..., n, k]"),
                op::option("out_dtype", &Options::out_dtype, "the dtype of a, or float32"),
                op::option("allow_tf32", &Options::allow_tf32,
                           "float32 operands may be rounded to tf32")},
    .out_doc = "[..., m, n], the leading axes of a and b broadcast",
    .extra_outputs = {},
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .in_place = false,
    .infer = infer,
    .check = check,
    .cost = cost,
    .table = kTable};

}  // namespace
}  // namespace kernel::gemm

void gemm(const TensorView& out, const TensorView& a, const TensorView& b,
          const GemmOptions& options) {
  op::run(kernel::gemm::kDefinition, out, {a, b}, options);
}

Tensor gemm(const TensorView& a, const TensorView& b, const GemmOptions& options) {
  return std::move(op::allocate(kernel::gemm::kDefinition, {a, b}, options)[0]);
}

op::OperatorList ops::gemm() {
  static const auto& entry = *new op::OperatorOf(kernel::gemm::kDefinition);  // leaked, as Kept is
  return {&entry};
}

}  // namespace tensorcraft
