// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/problem.hpp"

#include "tensorcraft/core/interrupt.hpp"
#include "tensorcraft/op/expression/evaluate.hpp"
#include "tensorcraft/op/host/code_rows.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/gemm.hpp"
#include "tensorcraft/op/host/gemv.hpp"
#include "tensorcraft/op/host/onednn.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/launch/shared_address.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace tensorcraft::kernel::gemm {
namespace {

// Entry `index` of a matrix's outer batch dimensions; the last batch dimension stays a stride.
host::Matrix matrix_at(const TensorView& t, int64_t index) {
  int64_t offset = 0;
  for (int i = t.rank() - 4; i >= 0; --i) {
    offset += index % t.shape(i) * t.stride(i);
    index /= t.shape(i);
  }
  return {.data = static_cast<std::byte*>(op::shared_address(t)) +
                  offset * int64_t(dtype_bytes(t.dtype())),
          .dtype = t.dtype(),
          .row = row_stride(t),
          .column = col_stride(t),
          .batch = t.rank() > 2 ? t.stride(t.rank() - 3) : 0};
}

// The host library takes one batch dimension: the last one.
int64_t inner_batch(const Problem& q) { return q.batch_rank() ? q.d.shape(q.batch_rank() - 1) : 1; }

// Is there a step after the product that host::gemm does not have?
bool finishes_apart(const Problem& q) {
  return q.gated || q.has_scales() || q.has_row_bias() || q.expression || q.is_by_block() ||
         q.has_codes() || q.a.dtype() == DType::int8;
}

host::GemmProblem host_problem(const Problem& q, int64_t outer) {
  host::GemmProblem p{.m = q.m(),
                      .n = q.n(),
                      .k = q.k(),
                      .batch = inner_batch(q),
                      .a = matrix_at(q.a, outer),
                      .b = matrix_at(q.b, outer),
                      .d = matrix_at(q.d, outer)};
  p.alpha = q.alpha;
  p.activation = q.activation;
  p.batch_invariant = q.batch_invariant;
  if (q.c) {
    p.c = matrix_at(*q.c, outer);
    p.beta = q.beta;
  }
  if (q.bias) {
    p.bias = {.data = q.bias->data(), .dtype = q.bias->dtype(), .column = q.bias->stride(0)};
  }
  return p;
}

DType sums_dtype(const Problem& q) {
  return q.a.dtype() == DType::int8 ? DType::int32 : DType::float32;
}
// The product alone, in float32 or int32, of a call that finishes it apart.
Dims sums_shape(const Problem& q) {
  Dims shape = q.d.shape();
  shape[shape.rank() - 1] = q.b_columns();
  return shape;
}
Problem product_of(Problem q, const TensorView& sums) {
  q.d = sums;
  q.c = q.bias = q.a_scale = q.b_scale = q.a_zero = q.b_zero = std::nullopt;
  q.promotion = Promotion::none;
  q.expression = std::nullopt;
  q.alpha = 1;
  q.beta = 0;
  q.activation = Activation::none;
  q.gated = false;
  return q;
}

using Multiply = void (*)(const host::GemmProblem&);
void multiply(const Problem& q, Multiply by) {
  const int64_t outer = q.batch() / inner_batch(q);
  for (int64_t i = 0; i < outer; ++i) by(host_problem(q, i));
}

bool is_float8(const host::ConstMatrix& m) {
  return m.dtype == DType::float8_e4m3fn || m.dtype == DType::float8_e5m2;
}

// How a matrix of float8 lies as bfloat16, which holds all its numbers: its lines stay lines.
host::ConstMatrix in_bfloat16(const host::ConstMatrix& m, int64_t rows, int64_t columns) {
  const bool by_rows = std::abs(m.column) <= std::abs(m.row);
  return {.dtype = DType::bfloat16,
          .row = by_rows ? columns : 1,
          .column = by_rows ? 1 : rows,
          .batch = m.batch ? rows * columns : 0};
}
host::GemmProblem in_bfloat16(host::GemmProblem p) {
  p.a = in_bfloat16(p.a, p.m, p.k);
  p.b = in_bfloat16(p.b, p.k, p.n);
  return p;
}

// The numbers of `from`, as `to` lies, whose data they become.
Tensor converted(host::ConstMatrix& to, const host::ConstMatrix& from, int64_t batch, int64_t rows,
                 int64_t columns) {
  const bool by_rows = to.column == 1;
  const int64_t lines = by_rows ? rows : columns, length = by_rows ? columns : rows;
  const int64_t of_line = by_rows ? from.row : from.column, step = by_rows ? from.column : from.row;
  Tensor all(to.dtype, {to.batch ? batch : 1, lines, length}, Device::cpu());
  host::for_each_row(all.size() / length, length, [&](int64_t line) {
    float* const x = host::scratch(host::Slot::line, length);
    const int64_t at = line / lines * from.batch + line % lines * of_line;
    host::load_codes(x, static_cast<const std::byte*>(from.data) + at, from.dtype, step, length);
    host::store_row(all.data_as<uint16_t>() + line * length, x, to.dtype, 1, length);
  });
  to.data = all.data();
  return all;
}

void multiply_by_onednn(const host::GemmProblem& p) {
  if (!is_float8(p.a)) return host::onednn::matmul(p);
  host::GemmProblem wide = in_bfloat16(p);
  const Tensor a = converted(wide.a, p.a, p.batch, p.m, p.k);
  const Tensor b = converted(wide.b, p.b, p.batch, p.k, p.n);
  host::onednn::matmul(wide);
}

}  // namespace

std::string_view onednn_refusal(const Problem& q) {
  if (!host::onednn::available()) return "oneDNN 3 is not installed";
  if (q.d.size() == 0) return "the result is empty";
  if (q.is_by_block()) return "scales by block: cpu adds the products of one after the other";
  if (q.batch_invariant) return "another m may be summed in another order";
  if (q.m() == 1 || q.n() == 1) return "one row or column: cpu reads the matrix faster";
  const host::GemmProblem p =
      finishes_apart(q)
          ? host_problem(product_of(q, {nullptr, sums_dtype(q), sums_shape(q), Device::cpu()}), 0)
          : host_problem(q, 0);
  if (is_float8(p.a) && host::is_gemv(p)) return "few rows: cpu reads float8 once, in place";
  const char* reason = host::onednn::declines(is_float8(p.a) ? in_bfloat16(p) : p);
  return reason ? reason : "";
}

namespace {

// A vector as floats.
std::vector<float> floats_of(const TensorView& t) {
  std::vector<float> all(size_t(t.size()));
  host::load_row(all.data(), t.data(), t.dtype(), t.rank() ? t.stride(0) : 1, t.size());
  return all;
}

// Applies what follows the sums of a row of D, in place.
class FinishSums {
 public:
  explicit FinishSums(const Problem& q) : q_(q) {
    if (q.c) c_.emplace(*q.c);
    if (q.bias) bias_ = floats_of(*q.bias);
    if (q.is_by_block()) return;
    if (q.a_scale) a_scale_ = floats_of(*q.a_scale);
    if (q.b_scale) b_scale_ = floats_of(*q.b_scale);
  }
  void operator()(float* x, int64_t row) const {
    const int64_t columns = q_.b_columns();
    const size_t i = size_t(row % q_.m());
    float alpha = q_.alpha;
    if (!a_scale_.empty()) alpha *= a_scale_[a_scale_.size() > 1 ? i : 0];
    if (b_scale_.size() == 1) alpha *= b_scale_[0];
    host::row_scale(x, x, alpha, 0, columns);
    if (b_scale_.size() > 1) host::row_multiply(x, b_scale_.data(), columns);
    if (c_) {
      const float* c = c_->read(row, host::scratch(host::Slot::row_c, columns));
      host::row_add_scaled(x, c, q_.beta, columns);
    }
    if (q_.has_row_bias())
      host::row_scale(x, x, 1, bias_[i], columns);
    else if (q_.bias)
      host::row_add(x, bias_.data(), columns);
    host::row_activate(x, x, q_.activation, q_.n());
    if (q_.gated) host::row_multiply(x, x + q_.n(), q_.n());
  }

 private:
  const Problem& q_;
  std::optional<host::Rows> c_;
  std::vector<float> bias_, a_scale_, b_scale_;
};

// The expression of finished sums, as if they were an array.
expression::ExpressionProblem on_sums(const Problem& q, const TensorView& sums) {
  expression::ExpressionProblem e{q.expression->program, q.has_codes() ? sums : q.d, {sums}};
  e.inputs.insert(e.inputs.end(), q.expression->arrays.begin(), q.expression->arrays.end());
  return e;
}

// The products of parts of k, `depth` of them, one after the other: add(part, first k of it).
template <class Add>
void multiply_parts(const Problem& q, int64_t depth, Multiply by, const Add& add) {
  const Tensor part(DType::float32, sums_shape(q), Device::cpu());
  Problem product = product_of(q, part);
  for (int64_t first = 0; first < q.k(); first += depth) {
    const int64_t end = std::min(q.k(), first + depth);
    product.a = q.a.slice(-1, first, end);
    product.b = q.b.slice(-2, first, end);
    multiply(product, by);
    host::for_each_row(q.batch() * q.m(), q.b_columns(), [&](int64_t row) {
      add(part.data_as<const float>() + row * q.b_columns(), row, first);
    });
  }
}

// Sums of float8 with the scales of each block.
void multiply_blocks(const Problem& q, float* sums, Multiply by) {
  const int64_t columns = q.b_columns(),
                per_scale = q.promotion == Promotion::by_square ? kScaleBlock : 1;
  const host::Elements a_scale(*q.a_scale), b_scale(*q.b_scale);
  const int64_t blocks = q.a_scale->shape(1), lines = q.b_scale->shape(1);
  std::fill_n(sums, q.batch() * q.m() * columns, 0.0f);
  multiply_parts(q, kScaleBlock, by, [&](const float* part, int64_t row, int64_t first) {
    const int64_t block = first / kScaleBlock;
    const float of_row = float(a_scale[row % q.m() * blocks + block]);
    float* const to = sums + row * columns;
    for (int64_t line = 0; line < lines; ++line) {
      const float scale = of_row * float(b_scale[block * lines + line]);
      const int64_t from = line * per_scale, end = std::min(columns, from + per_scale);
      for (int64_t i = from; i < end; ++i) to[i] += part[i] * scale;
    }
  });
}

// Sums of int8, which float holds exactly for this many products.
constexpr int64_t kExactProducts = 1024;
void multiply_int8(const Problem& q, uint32_t* sums, Multiply by) {
  const int64_t columns = q.b_columns();
  std::fill_n(sums, q.batch() * q.m() * columns, 0u);
  multiply_parts(q, kExactProducts, by, [&](const float* part, int64_t row, int64_t) {
    for (int64_t i = 0; i < columns; ++i) sums[row * columns + i] += uint32_t(int32_t(part[i]));
  });
}

// From sums of a b to those of (a - zero) (b - zero), as kernels do it.
class TakeZeros {
 public:
  explicit TakeZeros(const Problem& q)
      : q_(q), a_sums_(sums_of(q.b_zero, q.a)), b_sums_(sums_of(q.a_zero, q.b.transpose(-2, -1))) {}

  void operator()(uint32_t* sums, int64_t row) const {
    const int64_t columns = q_.b_columns(), entry = row / q_.m();
    const uint32_t zero = at(q_.a_zero, row % q_.m());
    const uint32_t rest = (a_sums_.empty() ? 0 : a_sums_[size_t(row)]) - uint32_t(q_.k()) * zero;
    for (int64_t i = 0; i < columns; ++i) {
      const uint32_t of_b = b_sums_.empty() ? 0 : b_sums_[size_t(entry * columns + i)];
      sums[i] -= at(q_.b_zero, i) * rest + zero * of_b;
    }
  }

 private:
  static uint32_t at(const std::optional<TensorView>& zero, int64_t i) {
    if (!zero) return 0;
    return uint32_t(zero->data_as<const int32_t>()[zero->rank() ? i * zero->stride(0) : 0]);
  }
  // Sums the last axis of each entry's lines.
  static std::vector<uint32_t> sums_of(const std::optional<TensorView>& needed,
                                       const TensorView& lines) {
    if (!needed) return {};
    const int64_t k = lines.shape(lines.rank() - 1), step = lines.stride(lines.rank() - 1);
    std::vector<uint32_t> all(size_t(lines.size() / k));
    const host::Elements elements(lines);
    host::for_each_row(int64_t(all.size()), k, [&](int64_t line) {
      const auto* from = reinterpret_cast<const int8_t*>(elements.address(line * k));
      for (int64_t i = 0; i < k; ++i) all[size_t(line)] += uint32_t(int32_t(from[i * step]));
    });
    return all;
  }

  const Problem& q_;
  std::vector<uint32_t> a_sums_, b_sums_;
};

// The product of a call that finishes it apart, as floats, or as int32 if D is.
void multiply_apart(const Problem& q, const Tensor& sums, Multiply by) {
  float* const floats = sums.data_as<float>();
  if (q.is_by_block()) return multiply_blocks(q, floats, by);
  const bool is_int8 = q.a.dtype() == DType::int8;
  auto* const words = reinterpret_cast<uint32_t*>(floats);
  if (is_int8 && by == host::gemm)
    multiply_int8(q, words, by);
  else
    multiply(product_of(q, {floats, sums_dtype(q), sums_shape(q), Device::cpu()}), by);
  if (q.has_zeros() && q.k() > 0) {
    const TakeZeros take(q);
    host::for_each_row(q.batch() * q.m(), q.b_columns(),
                       [&](int64_t row) { take(words + row * q.b_columns(), row); });
  }
  if (!is_int8 || q.d.dtype() == DType::int32) return;
  host::for_each_row(q.batch() * q.m(), q.b_columns(), [&](int64_t row) {
    for (int64_t i = row * q.b_columns(); i < (row + 1) * q.b_columns(); ++i)
      floats[i] = float(int32_t(words[i]));
  });
}

// Views the elements as float32, as which they are moved unchanged.
TensorView as_floats(const TensorView& t) {
  return TensorView(t.writable_data(), DType::float32, t.shape(), t.strides(), t.device());
}

float out_factor(const Problem& q) {
  return q.out_scale ? *q.out_scale->data_as<const float>() : 1;
}

// Rounds finished sums to 8-bit values.
void store_codes(const Problem& q, const Tensor& sums) {
  const host::CodeRows codes(q.d, {}, 1);
  const float factor = out_factor(q);
  host::for_each_row(q.batch() * q.m(), q.n(), [&](int64_t row) {
    float* x = sums.data_as<float>() + row * q.b_columns();
    host::row_scale(x, x, factor, 0, q.n());
    codes.commit(row, x);
  });
}

void compute(const Problem& q, Multiply by) {
  if (!finishes_apart(q)) return multiply(q, by);
  const Tensor sums(DType::float32, sums_shape(q), Device::cpu());
  multiply_apart(q, sums, by);
  const bool is_sums = q.d.dtype() == DType::int32;
  const FinishSums finish(q);
  const TensorView finished = sums.view().slice(-1, 0, q.n());
  const bool is_last = !q.expression && !q.has_codes();
  const host::Rows to(!is_last ? finished : is_sums ? as_floats(q.d) : q.d);
  host::for_each_row(q.batch() * q.m(), q.b_columns(), [&](int64_t row) {
    float* x = sums.data_as<float>() + row * q.b_columns();
    if (!is_sums) finish(x, row);
    float* y = to.target(row, x);
    if (y != x) std::copy_n(x, q.n(), y);
    to.commit(row, y);
  });
  if (q.expression) expression::evaluate(on_sums(q, finished));
  if (q.has_codes()) store_codes(q, sums);
}

}  // namespace

void cpu(const Problem& q) { compute(q, host::gemm); }

void onednn(const Problem& q) { compute(q, multiply_by_onednn); }

namespace {

// Element i of a vector, or the one number there is; `none` if there is none.
double line_value(const std::optional<TensorView>& of, int64_t i, double none) {
  return !of ? none : host::Elements(*of)[of->rank() ? i : 0];
}

// The scales of a row and a column, all or those of a block along k.
class ReferenceScales {
 public:
  explicit ReferenceScales(const Problem& q) : q_(q) {}
  double of_all(int64_t row, int64_t col) const {
    return q_.is_by_block() ? 1 : line_value(q_.a_scale, row, 1) * line_value(q_.b_scale, col, 1);
  }
  double of_block(int64_t row, int64_t col, int64_t block) const {
    if (!q_.is_by_block()) return 1;
    const int64_t line = q_.promotion == Promotion::by_square ? col / kScaleBlock : col;
    return host::Elements(*q_.a_scale)[row * q_.a_scale->shape(1) + block] *
           host::Elements(*q_.b_scale)[block * q_.b_scale->shape(1) + line];
  }

 private:
  const Problem& q_;
};

// Codes of what is finished.
void set_codes(const Problem& q, const TensorView& finished) {
  const host::Elements from(finished), to(q.d);
  const double factor = out_factor(q);
  for (int64_t i = 0; i < q.d.size(); ++i) {
    const double x = factor * from[i];
    if (q.d.dtype() != DType::int8)
      to.set(i, x);
    else
      to.set_integer(i, std::isnan(x) ? 0 : int64_t(std::nearbyint(std::clamp(x, -128.0, 127.0))));
  }
}

}  // namespace

void reference(const Problem& q) {
  std::optional<Tensor> sums;  // that an expression takes, or that become codes
  if (q.expression || q.has_codes()) sums.emplace(DType::float32, q.d.shape(), Device::cpu());
  const std::vector<double> a = host::Elements(q.a).all(), b = host::Elements(q.b).all();
  const host::Elements d(sums ? sums->view() : q.d), c(q.c.value_or(q.d)),
      bias(q.bias.value_or(q.d));
  const int64_t m = q.m(), n = q.n(), k = q.k(), columns = q.b_columns();
  const ReferenceScales scales(q);
  const auto sum_at = [&](int64_t entry, int64_t row, int64_t col) {
    check_interrupt();
    double sum = 0;
    const double a_zero = line_value(q.a_zero, row % m, 0), b_zero = line_value(q.b_zero, col, 0);
    for (int64_t first = 0; first < k; first += kScaleBlock) {
      double part = 0;
      for (int64_t i = first; i < std::min(k, first + kScaleBlock); ++i)
        part += (a[size_t(row * k + i)] - a_zero) *
                (b[size_t((entry * k + i) * columns + col)] - b_zero);
      sum += part * scales.of_block(row % m, col, first / kScaleBlock);
    }
    double x = double(q.alpha) * scales.of_all(row % m, col) * sum;
    if (q.c) x += double(q.beta) * c[row * n + col];
    if (q.bias) x += bias[q.has_row_bias() ? row % m : col];
    return x;
  };
  for (int64_t entry = 0; entry < q.batch(); ++entry) {
    for (int64_t row = entry * m; row < (entry + 1) * m; ++row) {
      for (int64_t col = 0; col < n; ++col) {
        double x = host::activate(q.activation, sum_at(entry, row, col));
        if (q.gated) x *= sum_at(entry, row, col + n);
        if (q.d.dtype() == DType::int32)
          d.set_integer(row * n + col, int64_t(x));
        else
          d.set(row * n + col, x);
      }
    }
  }
  if (q.expression) expression::evaluate_reference(on_sums(q, *sums));
  if (q.has_codes()) set_codes(q, *sums);
}

}  // namespace tensorcraft::kernel::gemm
