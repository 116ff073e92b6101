// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/packed/packed_weight.hpp"

namespace tensorcraft {

// How a GPTQ checkpoint stores zero points: the code that means 0 less 1, as its first format does
// ("gptq"), or that code ("gptq_v2").
enum class GptqZeros : int { minus_one, plain };

// Arguments of pack_weight_from_gptq() besides the arrays that it needs.
struct GptqOptions {
  // int32 (k,): the group of each row of W. Only rows in the order of their groups are taken.
  std::optional<TensorView> g_idx = {};
  // The checkpoint's own group, checked: -1 is one group for a column, 0 what scales say.
  int64_t group = 0;
  GptqZeros zeros = GptqZeros::minus_one;
};

// Weights (code - zero) * scale of 4 bits from a checkpoint in the form that GPTQ programs write:
//   qweight  int32 (k / 8, n): word i of a column has rows 8 i to 8 i + 7, lowest bits first
//   qzeros   int32 (groups, n / 8): zero points of 8 columns, lowest bits first
//   scales   (groups, n): float16, bfloat16 or float32
// Nothing is rounded; a stored zero point of 15 is 16 with minus_one. The result is where qweight
// is; it computes on the host and waits. If all zero points are 8, the result has none. Kind value
// for shapes that do not fit each other or a group that is no multiple of 16, unsupported for a
// g_idx in the order of activations.
PackedWeight pack_weight_from_gptq(const TensorView& qweight, const TensorView& qzeros,
                                   const TensorView& scales, const GptqOptions& options = {});

// Likewise from the form that AWQ programs write:
//   qweight  int32 (k, n / 8): a word has 8 columns, from the lowest bits on 0 2 4 6 1 3 5 7
//   qzeros   int32 (groups, n / 8), likewise
//   scales   (groups, n): float16, bfloat16 or float32
// group: what the checkpoint says, checked; -1 is one group for a column, 0 what scales say.
PackedWeight pack_weight_from_awq(const TensorView& qweight, const TensorView& qzeros,
                                  const TensorView& scales, int64_t group = 0);

}  // namespace tensorcraft
