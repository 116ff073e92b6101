// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/checks/gate.hpp"
#include "tensorcraft/op/value.hpp"
#include "tensorcraft/ops/gemm/choice/config_plan.h"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of grouped_gemm() besides the arrays that it needs.
struct GroupedGemmOptions {
  // One of them says which rows a group has; int32 or int64, on the device of a. The host does not
  // read them there.
  std::optional<TensorView> offsets = {};  // (groups + 1): group i has rows offsets[i] to [i + 1]
  std::optional<TensorView> sizes = {};    // (groups): so many rows, one group behind the other
  std::optional<TensorView> ids = {};      // (rows): the group of each row; those of one together
  bool transpose_b = false;                // b is (groups, n, k)
  Activation activation = Activation::none;
  Gate gated = Gate::none;  // b has 2 n columns, gates first: gate(left) right
  // Factors of products of float8, float32. Of a: one number, one a row, (rows, 1), or one for 128
  // elements of a row, (rows, blocks). Of b: one number, one a group, (groups), one a column,
  // (groups, n) or (groups, 1, n), or one for squares of 128 x 128, (groups, blocks, squares), or
  // for 128 elements of a column, (groups, blocks, n). Those of three dimensions lie as b does, so
  // with transpose_b (groups, n, 1), (groups, squares, blocks) and (groups, n, blocks).
  std::optional<TensorView> a_scale = {}, b_scale = {};
  std::optional<DType> out_dtype = {};    // that of a, float32, or of 16 bits if a is; of float8
                                          // bfloat16, float16 or float32
  std::optional<bool> allow_tf32 = {};    // float32 may be rounded; none: as configured
  std::optional<GemmConfig> config = {};  // as for gemm()
  std::string_view variant = {};          // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};   // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Arguments of masked_gemm() besides the arrays that it needs.
struct MaskedGemmOptions {
  bool transpose_b = false;                  // b is (groups, n, k)
  Activation activation = Activation::none;  // of the sums
  Gate gated = Gate::none;                   // b has 2 n columns, gates first: gate(left) right
  // As for grouped_gemm(), but those of rows lie as a does, (groups, rows, 1 or blocks).
  std::optional<TensorView> a_scale = {}, b_scale = {};
  std::optional<int64_t> expected_rows = {};  // of a group, which a tile is chosen for; none: most
  std::optional<DType> out_dtype = {};        // as for grouped_gemm()
  std::optional<bool> allow_tf32 = {};        // float32 may be rounded; none: as configured
  std::optional<GemmConfig> config = {};      // as for gemm()
  std::string_view variant = {};              // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};       // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// out[r, :] = activation(a[r, :] b[g, :, :]) for each row r of group g: a is (rows, k), b (groups,
// k, n), one dtype of float32, float16, bfloat16 and float8, any strides. Groups are runs of rows,
// which may be empty; rows that no group has keep what out had there. Sums are float32 and rounded
// once; of float8 they are promoted, as in gemm(), and times a_scale and b_scale. Gated, the left
// half of the columns is activated and multiplies the right half. Kinds: type for a dtype, value
// for a shape, none or several of offsets, sizes and ids, and on the CPU for what they say: offsets
// that descend or leave the rows, sizes that do, rows of one id apart. On other devices such arrays
// give any values, in out alone. unsupported for a config that no variant has, or 2^30 rows and
// more. If b is one matrix, (k, n), groups are along k, as gradients of weights need: out[g, :, :]
// = activation(a[:, part] b[part, :]), where part are the rows of b that offsets or sizes give
// group g. out is (groups, m, n); an empty group gives activation(0). Neither ids, gates nor float8
// are taken.
void grouped_gemm(const TensorView& out, const TensorView& a, const TensorView& b,
                  const GroupedGemmOptions& options);
Tensor grouped_gemm(const TensorView& a, const TensorView& b, const GroupedGemmOptions& options);

// out[g, r, :] = activation(a[g, r, :] b[g, :, :]) for the rows r before counts[g]: a is (groups,
// rows, k), b (groups, k, n), counts (groups), int32 or int64, which the host does not read on
// other devices than the CPU. Rows from counts[g] on keep what out had there. The rest as in
// grouped_gemm().
void masked_gemm(const TensorView& out, const TensorView& a, const TensorView& b,
                 const TensorView& counts, const MaskedGemmOptions& options = {});
Tensor masked_gemm(const TensorView& a, const TensorView& b, const TensorView& counts,
                   const MaskedGemmOptions& options = {});

}  // namespace tensorcraft
