// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/gemm_check.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/ops/gemm/problem.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::kernel::gemm {

bool is_float8(DType dtype) { return dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2; }
bool is_byte(DType dtype) { return is_float8(dtype) || dtype == DType::int8; }

std::span<const DType> product_dtypes(DType operand) {
  using enum DType;
  static constexpr DType kOfFloat8[] = {float32, float16, bfloat16, float8_e4m3fn, float8_e5m2};
  static constexpr DType kOfInt8[] = {int32, float32, float16, bfloat16, int8};
  static constexpr DType kOf16Bits[] = {float32,       float16,     bfloat16,
                                        float8_e4m3fn, float8_e5m2, int8};
  static constexpr DType kOfFloat32[] = {float32, float8_e4m3fn, float8_e5m2, int8};
  if (is_float8(operand)) return kOfFloat8;
  if (operand == int8) return kOfInt8;
  return operand == float32 ? std::span<const DType>(kOfFloat32) : kOf16Bits;
}

DType product_dtype(const TensorView& a, std::optional<DType> wanted) {
  const DType usual = is_float8(a.dtype())       ? DType::bfloat16
                      : a.dtype() == DType::int8 ? DType::int32
                                                 : a.dtype();
  const DType dtype = wanted.value_or(usual);
  const auto all = product_dtypes(a.dtype());
  if (dtype == usual || std::ranges::find(all, dtype) != all.end()) return dtype;
  std::string names;
  for (const DType& d : all)
    names += join(&d == &all.front() ? "" : &d == &all.back() ? " or " : ", ", d);
  fail(ErrorKind::type, "gemm: out_dtype of ", a.dtype(), " operands must be ", names, ", got ",
       dtype);
}

namespace {

// Checks an operand that is one number, or one for each row, [m, 1], or column, [n].
std::optional<TensorView> of_lines(std::string_view name, const std::optional<TensorView>& given,
                                   int rank, SymbolicSize& size, DType dtype) {
  if (!given) return {};
  const TensorView& t = *given;
  op::check_dtype("gemm", name, t, {dtype});
  if (t.size() == 1 && t.rank() <= 2) return t.at(t.data(), {}, {});
  const std::array<SizeRef, 2> shape{size, 1};
  TensorMatcher(std::span(shape).first(size_t(rank))).with_any_strides().verify(t, "gemm", name);
  return t.at(t.data(), {t.shape(0)}, {t.stride(0)});
}

// Factors of the rows of a, of which an a that is stored as [k, m] may have [1, m].
std::optional<TensorView> rows_of_a(const std::optional<TensorView>& t, bool transposed) {
  const bool lies_across = t && transposed && t->rank() == 2 && t->shape(0) == 1;
  return lies_across ? t->transpose(0, 1) : t;
}

// Factors of the columns of b as [n]: what lies as b does, with one for each, is [1, n], or [n, 1]
// of a b that is stored as [n, k].
std::optional<TensorView> columns_of_b(const std::optional<TensorView>& t, bool transposed) {
  const int axis = transposed ? 1 : 0;
  const bool lies_as_b = t && t->rank() == 2 && t->shape(axis) == 1;
  return lies_as_b ? t->select(axis, 0) : t;
}

// A scale as it lies beside [m, k] or [k, n], if it has two dimensions.
std::optional<TensorView> matrix_of_scales(const std::optional<TensorView>& scale,
                                           bool transposed) {
  if (!scale || scale->rank() != 2) return {};
  return transposed ? scale->transpose(0, 1) : *scale;
}

// Rows of a, columns of b, blocks along k, squares along n.
struct BlockCounts {
  int64_t m, n, k, squares;
};

bool has_shape(const std::optional<TensorView>& t, int64_t rows, int64_t cols) {
  return t && t->rank() == 2 && t->shape(0) == rows && t->shape(1) == cols;
}
bool is_number(const std::optional<TensorView>& t) { return t && t->size() == 1; }

// Are scales by block, and cannot be those of a whole matrix, of rows or of columns?
bool are_by_block(const std::optional<TensorView>& a, const std::optional<TensorView>& b,
                  const BlockCounts& count) {
  const bool a_blocks = has_shape(a, count.m, count.k) && !has_shape(a, count.m, 1);
  // With one block along k, scales of columns are of whole columns, unless a has one per row as
  // well.
  const bool b_columns =
      has_shape(b, count.k, count.n) && (count.k > 1 || has_shape(a, count.m, 1));
  const bool b_blocks = b_columns || has_shape(b, count.k, count.squares);
  return (a_blocks && !is_number(a)) || (b_blocks && !is_number(b));
}

Dims block_dims(int64_t rows, int64_t cols, bool transposed) {
  return transposed ? Dims{cols, rows} : Dims{rows, cols};
}

std::string text_of(const std::optional<TensorView>& scale) {
  return scale ? join("shape ", scale->shape()) : "none";
}

// Fails if scales of float8 have no shape that is one of theirs.
void check_scale_shapes(const GemmOptions& o, const BlockCounts& count, bool by_block) {
  const auto a = matrix_of_scales(o.a_scale, o.transpose_a);
  const auto b = matrix_of_scales(o.b_scale, o.transpose_b);
  const auto columns = columns_of_b(o.b_scale, o.transpose_b);
  const bool a_is_row = has_shape(rows_of_a(o.a_scale, o.transpose_a), count.m, 1);
  const bool b_is_column = columns && columns->rank() == 1 && columns->shape(0) == count.n;
  const bool a_is_whole = !o.a_scale || is_number(o.a_scale) || a_is_row;
  const bool b_is_whole = !o.b_scale || is_number(o.b_scale) || b_is_column;
  const char* const whole = by_block ? "" : "one number, ";
  if (by_block ? !has_shape(a, count.m, count.k) : !a_is_whole)
    fail(ErrorKind::value, "gemm: a_scale: expected ", whole,
         by_block ? "" : join(Dims{count.m, 1}, " or "), "one for 128 elements of a row of a, ",
         block_dims(count.m, count.k, o.transpose_a), by_block ? ", as b_scale is by block" : "",
         ", got ", text_of(o.a_scale));
  if (by_block ? !has_shape(b, count.k, count.n) && !has_shape(b, count.k, count.squares)
               : !b_is_whole)
    fail(ErrorKind::value, "gemm: b_scale: expected ", whole,
         by_block ? "" : join(Dims{count.n}, ", ", block_dims(1, count.n, o.transpose_b), ", "),
         "one for 128 elements of a column of b, ", block_dims(count.k, count.n, o.transpose_b),
         ", or one for squares of 128 x 128, ", block_dims(count.k, count.squares, o.transpose_b),
         by_block ? ", as a_scale is by block" : "", ", got ", text_of(o.b_scale));
}

// Scales by block, with the operands' own orientation.
Scales block_scales(const GemmOptions& o, const BlockCounts& count) {
  op::check_dtype("gemm", "a_scale", *o.a_scale, {DType::float32});
  op::check_dtype("gemm", "b_scale", *o.b_scale, {DType::float32});
  if (o.accumulation == Accumulation::fast)
    fail(ErrorKind::value,
         "gemm: accumulation: products with scales by block are promoted; leave accumulation out");
  const auto b = matrix_of_scales(o.b_scale, o.transpose_b);
  const bool by_column = has_shape(b, count.k, count.n);
  return {matrix_of_scales(o.a_scale, o.transpose_a), b,
          by_column ? Promotion::by_column : Promotion::by_square};
}

}  // namespace

Scales scales_of(const GemmOptions& o, DType dtype, SymbolicSize& m, SymbolicSize& n, int64_t k) {
  if (o.accumulation == Accumulation::fast && !is_float8(dtype))
    fail(ErrorKind::type, "gemm: accumulation: \"fast\" takes float8 operands, and a is ", dtype,
         "; leave accumulation out");
  Promotion promotion = Promotion::none;
  if (is_float8(dtype)) {
    const BlockCounts count{m.unwrap(), n.unwrap(), div_ceil(k, kScaleBlock),
                            div_ceil(n.unwrap(), kScaleBlock)};
    const bool by_block = are_by_block(matrix_of_scales(o.a_scale, o.transpose_a),
                                       matrix_of_scales(o.b_scale, o.transpose_b), count);
    check_scale_shapes(o, count, by_block);
    if (by_block) return block_scales(o, count);
    if (o.accumulation == Accumulation::promoted) promotion = Promotion::plain;
  }
  return {of_lines("a_scale", rows_of_a(o.a_scale, o.transpose_a), 2, m, DType::float32),
          of_lines("b_scale", columns_of_b(o.b_scale, o.transpose_b), 1, n, DType::float32),
          promotion};
}

Zeros zeros_of(const GemmOptions& o, DType dtype, SymbolicSize& m, SymbolicSize& n) {
  if ((o.a_zero || o.b_zero) && dtype != DType::int8)
    fail(ErrorKind::type, "gemm: ", o.a_zero ? "a_zero" : "b_zero",
         " is a zero point of int8 operands, and a is ", dtype, "; leave it out");
  return {of_lines("a_zero", rows_of_a(o.a_zero, o.transpose_a), 2, m, DType::int32),
          of_lines("b_zero", columns_of_b(o.b_zero, o.transpose_b), 1, n, DType::int32)};
}

void check_result(DType result, const GemmOptions& o) {
  if (is_byte(result) && o.c)
    fail(ErrorKind::value, "gemm: c would have the dtype of the result, ", result,
         "; leave it out, or add it by an epilogue, such as epilogue=\"x + c\"");
  if (result != DType::int32) return;
  const bool is_alone = o.alpha == 1 && !o.c && !o.bias && !o.a_scale && !o.b_scale &&
                        !o.epilogue && o.gated == Gate::none && o.activation == Activation::none;
  if (!is_alone)
    fail(ErrorKind::value,
         "gemm: out is int32, which is the sums of int8 products alone; alpha, c, bias, scales, "
         "gates, activations and epilogues need out_dtype float32, float16, bfloat16 or int8");
}

std::optional<TensorView> out_scale_of(DType result, const GemmOptions& o) {
  if (!o.out_scale) return {};
  const TensorView& t = *o.out_scale;
  if (!is_byte(result))
    fail(ErrorKind::value, "gemm: out_scale is a factor of results of 8 bits, and out is ", result,
         "; leave it out, or give out_dtype float8_e4m3fn, float8_e5m2 or int8");
  op::check_dtype("gemm", "out_scale", t, {DType::float32});
  if (t.size() != 1)
    fail(ErrorKind::value, "gemm: out_scale: expected one number, got shape ", t.shape());
  return t.at(t.data(), {}, {});
}

bool may_round(const GemmOptions& o) {
  if (o.precision != Precision::standard) return o.precision == Precision::tf32;
  return o.allow_tf32.value_or(config().allow_tf32);
}

void check_gate(const GemmOptions& o) {
  if (o.gated == Gate::none) return;
  if (o.activation != Activation::none)
    fail(ErrorKind::value, "gemm: gated has an activation of its own; leave activation out");
  if (o.c) fail(ErrorKind::value, "gemm: gated takes no c; leave it out, or add it afterwards");
}

void check_bias(const std::optional<TensorView>& bias, SymbolicSize& m, SymbolicSize& n,
                DType operand, DType result) {
  if (!bias) return;
  SymbolicDType dtype({!is_byte(operand) ? operand : is_byte(result) ? DType::float32 : result});
  if (bias->rank() == 2)
    TensorMatcher({m, 1}).with_any_strides().with_dtype(dtype).verify(*bias, "gemm", "bias");
  else
    TensorMatcher({n}).with_any_strides().with_dtype(dtype).verify(*bias, "gemm", "bias");
}

void merge_batch(Problem& q) {
  std::vector<TensorView*> all{&q.d, &q.a, &q.b};
  if (q.c) all.push_back(&*q.c);
  if (q.expression)
    for (TensorView& t : q.expression->arrays) all.push_back(&t);
  Dims shape;
  std::vector<Dims> strides(all.size());
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
    return t.at(t.data(), sizes, steps);
  };
  for (size_t t = all.size(); t-- > 0;) *all[t] = merged(*all[t], strides[t]);
}

}  // namespace tensorcraft::kernel::gemm
