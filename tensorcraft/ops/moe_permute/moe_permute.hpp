// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of moe_sort() besides the arrays that it needs.
struct MoeSortOptions {
  int64_t num_experts = 1;  // 1 to 1024
  int64_t align = 1;        // every group of rows begins at a multiple of it
  // Further outputs, written if given; int32.
  std::optional<TensorView> row_map = {};  // (tokens, k): the row of each id; -1: it has none
  std::optional<TensorView> sources = {};  // (rows): which of the ids has the row; -1: none
  std::string_view variant = {};           // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};    // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Arguments of moe_permute() besides the arrays that it needs.
struct MoePermuteOptions {
  int64_t num_experts = 1;  // 1 to 1024
  int64_t align = 1;        // every group of rows begins at a multiple of it
  // Further outputs, written if given; int32, as those of moe_sort().
  std::optional<TensorView> offsets = {}, row_map = {}, sources = {};
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// The maps of moe_sort().
struct MoeSortResult {
  // int32: (num_experts + 1), (tokens, k) and (rows).
  Tensor offsets, row_map, sources;
  // Converts to offsets, so the result can be passed as a tensor.
  operator TensorView() const { return offsets; }  // NOLINT
  // Hands it over: Tensor y = ... takes the memory.
  operator Tensor() && { return std::move(offsets); }  // NOLINT
};

// The rows of moe_permute(), and the maps of moe_sort().
struct MoePermuteResult {
  // (rows, hidden), dtype of x; the rest as in MoeSortResult.
  Tensor out, offsets, row_map, sources;
  // Converts to out, so the result can be passed as a tensor.
  operator TensorView() const { return out; }  // NOLINT
  // Hands it over: Tensor y = ... takes the memory.
  operator Tensor() && { return std::move(out); }  // NOLINT
};

// A row for each id, sorted by expert, and of one expert in the order of tokens, then slots. ids:
// (tokens, k), int32 or int64, any strides; one outside [0, num_experts) has no row, as those of
// experts that other devices have. Expert e has the rows offsets[e] to offsets[e + 1], which may be
// none. offsets are multiples of align, and rows that align adds have the source -1, as have all
// behind offsets[num_experts]: how many rows there are depends on shapes alone. It is
// tokens * k + min(num_experts, tokens * k) * (align - 1), rounded down to a multiple of align,
// and at least align: enough for all ids. A source is token * k + slot. Kind value if num_experts
// is not in [1, 1024], align is below 1, or 31 bits do not count the rows.
void moe_sort(const TensorView& offsets, const TensorView& ids, const MoeSortOptions& options = {});
MoeSortResult moe_sort(const TensorView& ids, const MoeSortOptions& options = {});

// out[r, :] = x[sources[r] / k, :], zeros where the source is -1: the tokens of each expert as
// neighbouring rows. x: (tokens, hidden), any dtype and strides, whose bits are moved; ids, rows
// and the maps as in moe_sort(). moe_combine() brings the rows back by row_map.
void moe_permute(const TensorView& out, const TensorView& x, const TensorView& ids,
                 const MoePermuteOptions& options = {});
MoePermuteResult moe_permute(const TensorView& x, const TensorView& ids,
                             const MoePermuteOptions& options = {});

}  // namespace tensorcraft
