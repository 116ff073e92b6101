// SPDX-License-Identifier: Apache-2.0
#include "bench/product.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/launch/shared_address.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tensorcraft::bench {
namespace {

constexpr int64_t kBlocks = 16,
                  kBlockElements = 4096;  // that a result is checked at, each at least

// Options of gemm that a library knows, or that do not change what is computed.
constexpr std::string_view kKnown[] = {
    "c",           "alpha",           "beta",      "bias",       "activation",
    "transpose_a", "transpose_b",     "out_dtype", "allow_tf32", "precision",
    "gated",       "batch_invariant", "a_scale",   "b_scale",    "accumulation"};

bool is_given(const op::Value& value) { return !std::holds_alternative<std::monostate>(value); }

bool is_true(const op::Value& value) {
  const auto* const flag = std::get_if<bool>(&value);
  return flag && *flag;
}

std::string word_of(const op::Value& value) {
  const auto* const word = std::get_if<std::string_view>(&value);
  return word && *word != "none" ? std::string(*word) : "";
}

float number_of(const op::Value& value, float otherwise) {
  if (const auto* const number = std::get_if<double>(&value)) return float(*number);
  if (const auto* const whole = std::get_if<int64_t>(&value)) return float(*whole);
  return otherwise;
}

Dims batch_of(const TensorView& t) {
  return Dims(std::span(t.shape().begin(), size_t(std::max(t.rank() - 2, 0))));
}

// Are the batch axes one axis of matrices at equal distances?
bool has_one_stride(const TensorView& t) {
  int64_t next = 0;
  for (int i = t.rank() - 3; i >= 0; --i) {
    if (t.shape(i) == 1) continue;
    if (next && t.stride(i) != next) return false;
    next = t.stride(i) * t.shape(i);
  }
  return true;
}

int64_t batch_stride(const TensorView& t) {
  for (int i = t.rank() - 3; i >= 0; --i)
    if (t.shape(i) > 1) return t.stride(i);
  return 0;
}

ProductMatrix matrix_of(const TensorView& t) {
  const int rows = t.rank() - 2, cols = t.rank() - 1;
  return {.data = op::shared_address(t),
          .dtype = t.dtype(),
          .rows = t.shape(rows),
          .cols = t.shape(cols),
          .leading = t.shape(rows) > 1 ? t.stride(rows) : t.shape(cols),
          .batch_stride = batch_stride(t)};
}

std::string matrix_refusal(std::string_view name, const TensorView& t, const Dims& batch) {
  if (t.size() == 0) return "the product is empty";
  if (t.rank() < 2) return join(name, " is no matrix");
  if (t.shape(t.rank() - 1) > 1 && t.stride(t.rank() - 1) != 1)
    return join(name, " has no unit stride along its rows");
  if (t.shape(t.rank() - 2) > 1 && t.stride(t.rank() - 2) < t.shape(t.rank() - 1))
    return join("rows of ", name, " overlap");
  const Dims own = batch_of(t);
  const bool is_one = std::ranges::all_of(own, [](int64_t size) { return size == 1; });
  if (!is_one && (own != batch || !has_one_stride(t)))
    return join(name, " is broadcast along a part of the leading dimensions");
  return {};
}

const TensorView* array(const Operands& operands, int copy, std::string_view name) {
  const auto& options = operands.request().op().description().options;
  for (size_t i = 0; i < options.size(); ++i)
    if (options[i].name == name) return std::get_if<TensorView>(&operands.options(copy)[i]);
  return nullptr;
}

// All entries of a batch below each other are one matrix.
void fold(ProductMatrix& x, int64_t batch) {
  x.rows *= batch;
  x.batch_stride = 0;
}

bool is_foldable(const ProductMatrix& x) { return x.batch_stride == x.rows * x.leading; }

bool is_byte(DType dtype) {
  return dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2 || dtype == DType::int8;
}

// Why scales have no counterpart: those of float8 alone have one, of a whole operand or its lines.
std::string scale_refusal(const Operands& operands) {
  const bool is_float8 =
      is_byte(operands.inputs(0)[0].dtype()) && operands.inputs(0)[0].dtype() != DType::int8;
  for (const char* name : {"a_scale", "b_scale"}) {
    const TensorView* const scale = array(operands, 0, name);
    if (!scale) continue;
    if (!is_float8) return join("it has no ", name, " of this dtype");
    if (scale->rank() == 2 && scale->shape(1) > 1) return "it has other scales by block";
  }
  return {};
}

double epsilon_of(DType dtype) {
  if (dtype == DType::bfloat16) return 0x1p-8;
  return dtype == DType::float16 ? 0x1p-11 : 0x1p-24;
}

}  // namespace

std::string product_refusal(const PeerProblem& problem) {
  const op::Description& d = problem.operands.request().op().description();
  for (size_t i = 0; i < d.options.size(); ++i)
    if (is_given(problem.operands.request().options()[i]) &&
        std::ranges::find(kKnown, d.options[i].name) == std::end(kKnown))
      return join("it has no ", d.options[i].name);
  const Operands& operands = problem.operands;
  const Dims batch = batch_of(operands.outputs(0)[0]);
  const auto inputs = operands.inputs(0);
  for (const auto& [name, t] : {std::pair{"a", &inputs[0]},
                                {"b", &inputs[1]},
                                {"out", &operands.outputs(0)[0]},
                                {"c", array(operands, 0, "c")}})
    if (std::string reason = t ? matrix_refusal(name, *t, batch) : ""; !reason.empty())
      return reason;
  if (is_byte(operands.outputs(0)[0].dtype())) return "it is held against results of more bits";
  const TensorView* const bias = array(operands, 0, "bias");
  if (bias && bias->rank() != 1) return "it has a bias of columns only";
  return scale_refusal(operands);
}

Product product_of(const PeerProblem& problem, int copy) {
  const Operands& operands = problem.operands;
  const TensorView& out = operands.outputs(copy)[0];
  const auto inputs = operands.inputs(copy);
  Product p{.a = matrix_of(inputs[0]),
            .b = matrix_of(inputs[1]),
            .d = matrix_of(out),
            .c = {},
            .bias = {},
            .a_scale = {},
            .b_scale = {}};
  if (const TensorView* const c = array(operands, copy, "c")) p.c = matrix_of(*c);
  if (const TensorView* const bias = array(operands, copy, "bias")) p.bias = *bias;
  if (const TensorView* const scale = array(operands, copy, "a_scale")) p.a_scale = *scale;
  if (const TensorView* const scale = array(operands, copy, "b_scale")) p.b_scale = *scale;
  p.fast = word_of(option_of(problem, "accumulation")) == "fast";
  for (const int64_t size : batch_of(out)) p.batch *= size;
  p.transpose_a = is_true(option_of(problem, "transpose_a"));
  p.transpose_b = is_true(option_of(problem, "transpose_b"));
  p.tf32 = is_true(option_of(problem, "allow_tf32")) ||
           word_of(option_of(problem, "precision")) == "tf32";
  p.alpha = number_of(option_of(problem, "alpha"), 1);
  p.beta = p.c ? number_of(option_of(problem, "beta"), 1) : 0;
  p.activation = word_of(option_of(problem, "activation"));
  p.gate = word_of(option_of(problem, "gated"));
  const bool folds = p.batch > 1 && p.b.batch_stride == 0 && !p.transpose_a && is_foldable(p.a) &&
                     is_foldable(p.d) && (!p.c || is_foldable(*p.c));
  if (!folds) return p;
  for (ProductMatrix* x : {&p.a, &p.d, p.c ? &*p.c : nullptr})
    if (x) fold(*x, p.batch);
  p.batch = 1;
  return p;
}

ExpectedResult::ExpectedResult(const PeerProblem& problem, const Product& product)
    : out_(problem.operands.outputs(0)[0]), stream_(problem.stream) {
  problem.ours(0);
  const int64_t cols = out_.shape(out_.rank() - 1), size = out_.size();
  length_ = std::min(size, std::max(cols, kBlockElements));
  count_ = std::min(kBlocks, (size + length_ - 1) / length_);
  step_ = count_ > 1 ? (size - length_) / (count_ - 1) : 0;
  const double k = double(product.k());
  result_epsilon_ = epsilon_of(out_.dtype());
  // Tensor cores cut off what falls below the largest of the terms they add, in each step along k.
  // For float8 they keep 13 bits.
  sum_epsilon_ = product.tf32               ? 0x1p-7
                 : is_byte(product.a.dtype) ? 0x1p-12 * std::max(k / 32, 16.0)
                                            : 0x1p-22 * std::max(k / 16, 16.0);
  // Operands are standard normal.
  scale_ = std::abs(product.alpha) * std::sqrt(k) + std::abs(product.beta);
  for (int64_t i = 0; i < count_; ++i) expected_.push_back(values(i));
}

TensorView ExpectedResult::block(int64_t i) const {
  return {out_.data_as<std::byte>() + size_t(i * step_) * dtype_bytes(out_.dtype()), out_.dtype(),
          Dims{length_}, out_.device()};
}

void ExpectedResult::poison() const {
  const Tensor none(out_.dtype(), {length_}, Device::cpu());
  const host::Elements elements(none.view());
  for (int64_t i = 0; i < length_; ++i) elements.set(i, std::numeric_limits<double>::quiet_NaN());
  for (int64_t i = 0; i < count_; ++i) copy_bytes(block(i), none.view(), stream_);
}

std::vector<double> ExpectedResult::values(int64_t i) const {
  const Tensor here(out_.dtype(), {length_}, Device::cpu());
  copy_bytes(here.view(), block(i), stream_);
  const host::Elements elements(here.view());
  std::vector<double> all(static_cast<size_t>(length_));
  for (int64_t j = 0; j < length_; ++j) all[size_t(j)] = elements[j];
  return all;
}

// A library may add partial sums, or store them before an activation, in the result's dtype.
double ExpectedResult::tolerance(double expected) const {
  return 4 * result_epsilon_ * std::max(std::abs(expected), scale_) + sum_epsilon_ * scale_;
}

std::string ExpectedResult::difference() const {
  const int64_t cols = out_.shape(out_.rank() - 1);
  for (int64_t i = 0; i < count_; ++i) {
    const std::vector<double> found = values(i);
    for (int64_t j = 0; j < length_; ++j) {
      const double x = found[size_t(j)], ours = expected_[size_t(i)][size_t(j)];
      if (std::abs(x - ours) <= tolerance(ours)) continue;  // false for NaN
      const int64_t at = i * step_ + j;
      return join("at row ", at / cols, ", column ", at % cols, " it has ", x, ", ours ", ours,
                  "; the tolerance is ", tolerance(ours));
    }
  }
  return {};
}

}  // namespace tensorcraft::bench
