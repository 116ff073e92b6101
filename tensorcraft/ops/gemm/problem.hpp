// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/device/activation.h"
#include "tensorcraft/op/expression/language.hpp"
#include "tensorcraft/op/choice/ladder.hpp"
#include "tensorcraft/op/operator.hpp"
#include "tensorcraft/op/value.hpp"
#include "tensorcraft/ops/gemm/choice/config_plan.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft {

// The option `config` as text: "tile_m=128, schedule=ping_pong".
template <>
struct op::Field<GemmConfig> {
  static constexpr auto kind = ParameterKind::settings;
  static GemmConfig get(std::string_view op, std::string_view name, const Value& v);
  static std::string text(const GemmConfig& config);
};

}  // namespace tensorcraft

namespace tensorcraft::kernel::gemm {

// Follows a finished sum, x, which is the first input of the program; the arrays are the others,
// broadcast to d.
struct SumExpression {
  expression::Program program;
  std::vector<TensorView> arrays;
};

// The array that says which rows of a and d each batch entry has, a group of rows.
enum class GroupArray : int { offsets, sizes, ids, counts };
struct RowGroups {
  GroupArray kind;
  TensorView array;
  int64_t expected_rows;      // of a group, or its length along k
  int along = kGroupsOfRows;  // or kGroupsOfK: the rows are those of b, and columns of a
  bool along_k() const { return along == kGroupsOfK; }
};

// A checked call. The matrices are the last two dimensions: d and c m x n, a m x k, b k x n. All
// four have the same batch dimensions in front, broadcast, and merged as far as their strides
// allow.
struct Problem {
  TensorView d, a, b;
  std::optional<TensorView> c;     // only if beta is not 0
  std::optional<TensorView> bias;  // [n], or [m, 1]
  // [m], [n], or one number: []; by block [m, blocks] and [blocks, n] or [blocks, squares]. With
  // groups an axis of them is in front.
  std::optional<TensorView> a_scale, b_scale;
  std::optional<TensorView> out_scale;       // one number: []
  std::optional<TensorView> a_zero, b_zero;  // int32: [m], [n], or one number: []
  Promotion promotion;
  float alpha, beta;
  Activation activation;
  bool gated;  // b has 2 n columns, and so have bias and b_scale; the activation is the gates'
  std::optional<SumExpression> expression;
  bool allow_tf32;   // float32 operands may be rounded
  bool splits_tf32;  // they may become two parts of tf32 instead
  bool batch_invariant;
  GemmConfig config;
  // One batch axis of groups. a and d have a stride of 0 there, unless it has counts; of groups
  // along k a and b.
  std::optional<RowGroups> groups;

  int64_t m() const { return d.shape(d.rank() - 2); }
  int64_t n() const { return d.shape(d.rank() - 1); }
  int64_t k() const { return a.shape(a.rank() - 1); }
  int64_t b_columns() const { return gated ? 2 * n() : n(); }
  bool has_row_bias() const { return bias && bias->rank() == 2; }
  bool is_by_block() const { return kernel::gemm::is_by_block(promotion); }
  bool has_zeros() const { return a_zero || b_zero; }
  bool has_codes() const { return dtype_bytes(d.dtype()) == 1; }
  bool has_scales() const { return (a_scale || b_scale) && !is_by_block(); }
  // Are there scales for each row or column?
  bool has_line_scales() const {
    const int one_number = groups ? 1 : 0;
    return has_scales() &&
           ((a_scale && a_scale->rank() > one_number) || (b_scale && b_scale->rank() > one_number));
  }
  // Scales as those of the first batch entry.
  TensorView of_entry(const TensorView& scale) const {
    if (!groups) return scale;
    const auto rest = [](const Dims& all) {
      return Dims(std::span(all.begin() + 1, size_t(all.rank() - 1)));
    };
    return scale.at(scale.data(), rest(scale.shape()), rest(scale.strides()));
  }
  int batch_rank() const { return d.rank() - 2; }
  int64_t batch() const {
    int64_t count = 1;
    for (int i = 0; i < batch_rank(); ++i) count *= d.shape(i);
    return count;
  }
};

// The value of the option `config` that fixes all it can of a Config.
std::string config_option(const Config& c);

inline int64_t row_stride(const TensorView& matrix) { return matrix.stride(matrix.rank() - 2); }
inline int64_t col_stride(const TensorView& matrix) { return matrix.stride(matrix.rank() - 1); }

// The rungs of gemm.
const op::Ladder<Problem>& ladder();

// grouped_gemm and masked_gemm.
op::OperatorList grouped_operators();

// Host variants.
std::string_view onednn_refusal(const Problem& q);
void onednn(const Problem& q);
void cpu(const Problem& q);
void reference(const Problem& q);

// Host variants of grouped products.
void cpu_grouped(const Problem& q);
void reference_grouped(const Problem& q);

}  // namespace tensorcraft::kernel::gemm
