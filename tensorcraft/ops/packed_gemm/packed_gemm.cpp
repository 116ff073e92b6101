// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/packed_gemm/packed_gemm.hpp"

#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/packed_gemm/plan.h"
#include "tensorcraft/ops/packed_gemm/problem.hpp"
#include "tensorcraft/ops/registry.hpp"

namespace tensorcraft {
namespace kernel::packed_gemm {

Params params(const Problem& q) {
  const int64_t groups = q.scales.shape(1), group = groups ? q.a.shape(1) / groups : 1;
  return {.a = q.a.data(),
          .codes = q.codes.data_as<const uint8_t>(),
          .scales = q.scales.data(),
          .zeros = q.zeros && !q.has_offsets() ? q.zeros->data_as<const uint8_t>() : nullptr,
          .offsets = q.has_offsets() ? q.zeros->data() : nullptr,
          .bias = data_of(q.bias),
          .out = q.out.writable_data(),
          .m = q.a.shape(0),
          .n = q.codes.shape(0),
          .k = q.a.shape(1),
          .group = group,
          .groups = groups,
          .by_group = Divider::of(std::min(group, kMaxK)),
          .a_strides = {q.a.stride(0), q.a.stride(1)},
          .out_strides = {q.out.stride(0), q.out.stride(1)},
          .tensor_scale = q.tensor_scale};
}

namespace {

constexpr std::string_view kName = "packed_gemm";
constexpr int64_t kLeastGroup = 16;
constexpr std::string_view kGroups[] = {"one", "four", "any"};
constexpr std::string_view kZeros[] = {"codes", "offsets"};
constexpr ConfigField kFields[] = {{"threads"}, {"tokens"},          {"row_tiles"},
                                   {"parts"},   {"groups", kGroups}, {"zeros", kZeros}};

// Returns the group of a format of e2m1 codes; 0 for int4, which takes any.
int group_of(DType scales) {
  return scales == DType::float8_e4m3fn ? 16 : scales == DType::uint8 ? 32 : 0;
}

op::RungCall<Params, Given> rung_call(const Problem& q) {
  return {params(q),
          {int(dtype_bytes(q.a.dtype())), group_of(q.scales.dtype())},
          {q.a.dtype(), q.scales.dtype()}};
}

const op::HostVariant<Problem> kHost[] = {
    {.name = "cpu", .idea = "float, a row of weights unpacked once, over all cores", .run = cpu},
    {.name = "reference", .idea = "double, obvious loops", .run = reference},
};

std::vector<op::OutputSpec> infer(std::span<const TensorView> in, const PackedGemmOptions& o) {
  SymbolicSize m("m"), k("k"), n("n"), half("k / 2"), groups("groups");
  TensorMatcher({m, k})
      .with_any_strides()
      .with_dtype({DType::float32, DType::float16, DType::bfloat16})
      .verify(in[0], kName, "a");
  TensorMatcher({n, half}).with_dtype({DType::uint8}).verify(in[1], kName, "codes");
  TensorMatcher({n, groups})
      .with_dtype(
          {DType::float32, DType::float16, DType::bfloat16, DType::uint8, DType::float8_e4m3fn})
      .verify(in[2], kName, "scales");
  const int64_t depth = k.unwrap();
  if (depth != 2 * half.unwrap())
    fail(ErrorKind::value, kName, ": codes: expected k / 2 = ", depth / 2,
         " bytes a row, two codes each, since a has k = ", depth, ", got ", half.unwrap());
  if (depth % kLeastGroup)
    fail(ErrorKind::value, kName, ": a: k must be a multiple of 16, got ", depth);
  if (depth > 0 &&
      (groups.unwrap() == 0 || depth % groups.unwrap() || depth / groups.unwrap() % kLeastGroup))
    fail(ErrorKind::value, kName, ": scales: expected k / group scales a row for a group of a ",
         "multiple of 16 that divides k = ", depth, ", got ", groups.unwrap());
  const bool is_int4 = is_int4_scale(in[2].dtype());
  if (o.zeros) {
    if (!is_int4)
      fail(ErrorKind::value, kName,
           ": zeros: only int4 has zero points, whose scales are floats of ",
           "16 or 32 bits; these are ", in[2].dtype(), "; leave it out");
    TensorMatcher({n, groups})
        .with_dtype({DType::uint8, in[2].dtype()})
        .verify(*o.zeros, kName, "zeros");
  }
  if (o.tensor_scale != 1 && in[2].dtype() != DType::float8_e4m3fn)
    fail(ErrorKind::value, kName, ": tensor_scale: only nvfp4 has one, whose scales are ",
         "float8_e4m3fn; these are ", in[2].dtype(), "; leave it out");
  if (o.bias) TensorMatcher({n}).with_dtype({in[0].dtype()}).verify(*o.bias, kName, "bias");
  return {{"out", in[0].dtype(), {m.unwrap(), n.unwrap()}}};
}

Problem check(const op::Call<PackedGemmOptions>& call) {
  const PackedGemmOptions& o = call.options;
  const op::OutputSpec result = infer(call.inputs, o)[0];
  op::check_like(kName, "out", call.out(), result.dtype, result.shape);
  return {call.out(), call.in(0), call.in(1), call.in(2), o.zeros, o.bias, o.tensor_scale};
}

op::Cost cost(const Problem& q) {
  return {.bytes = double(q.a.nbytes() + q.out.nbytes() + q.codes.nbytes() + q.scales.nbytes() +
                          (q.zeros ? q.zeros->nbytes() : 0) + (q.bias ? q.bias->nbytes() : 0)),
          .flops = 2.0 * double(q.a.size()) * double(q.codes.shape(0))};
}

constexpr DType kScaleTypes[] = {DType::float32, DType::float16, DType::bfloat16, DType::uint8,
                                 DType::float8_e4m3fn};

const op::Definition<Problem, PackedGemmOptions> kDefinition{
    .name = kName,
    .group = "matrix",
    .summary = "Product with weights of 4 bits: int4, mxfp4 or nvfp4.",
    .details =
        "out = a W^T + bias, W (n, k) by codes and scales. The dtype of scales says what a code "
        "means: a float of 16 or 32 bits: int4, (code - zero) * scale, zero 8 if zeros are not "
        "given, and code * scale + zero if they are of the dtype of scales; "
        "uint8: mxfp4, e2m1(code) * 2^(scale - 127); float8_e4m3fn: nvfp4, e2m1(code) * scale * "
        "tensor_scale. tc.pack_weight makes codes; their order is that of device/pack4.h. k and "
        "group "
        "are multiples of 16. Weights are exact and sums in float32. Results repeat to the bit. A "
        "row of a has the same bits whatever rows stand beside it in calls of 1 to 8 rows, of 9 "
        "to 16, and of more; from one of these to another the order of its sums may change.",
    .inputs = {{"a", op::takes(op::kFloatTypes, "(m, k): %, any strides")},
               {"codes", op::takes(op::kUint8, "%, (n, k / 2), contiguous: two codes a byte")},
               {"scales", op::takes(kScaleTypes, "%, (n, k / group), contiguous")}},
    .options = {op::option("zeros", &PackedGemmOptions::zeros,
                           op::takes(op::kUint8,
                                     "(n, k / group), of int4: %, the codes that mean 0, or of the "
                                     "dtype of scales, what code 0 means")),
                op::option("bias", &PackedGemmOptions::bias, "(n,), dtype of a"),
                op::option("tensor_scale", &PackedGemmOptions::tensor_scale,
                           "of nvfp4, a factor of every weight")},
    .out_doc = "(m, n), dtype of a",
    .dtypes = {DType::float32, DType::float16, DType::bfloat16},
    .infer = infer,
    .check = check,
    .cost = cost,
    .ladder = op::make_ladder<rung_call, kRungs>(kName, kFields),
    .host = kHost};

}  // namespace
}  // namespace kernel::packed_gemm

void packed_gemm(const TensorView& out, const TensorView& a, const TensorView& codes,
                 const TensorView& scales, const PackedGemmOptions& options) {
  op::run(kernel::packed_gemm::kDefinition, out, {a, codes, scales}, options);
}

Tensor packed_gemm(const TensorView& a, const TensorView& codes, const TensorView& scales,
                   const PackedGemmOptions& options) {
  return std::move(op::allocate(kernel::packed_gemm::kDefinition, {a, codes, scales}, options)[0]);
}

op::OperatorList ops::packed_gemm() { return op::registered(kernel::packed_gemm::kDefinition); }

}  // namespace tensorcraft
