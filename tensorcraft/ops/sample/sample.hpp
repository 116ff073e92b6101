// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/checks/value_or_tensor.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of sample() besides logits. Each of the first six is a number, or a tensor on the
// device of logits: of shape (), or with one number for each row. Rows count in row-major order.
struct SampleOptions {
  NumberOrTensor temperature = 1.0;      // float32; 0: the largest logit
  NumberOrTensor top_k = {};             // int32 or int64: how many logits stay
  NumberOrTensor top_p = {};             // float32: the weight that stays, of all
  NumberOrTensor min_p = {};             // float32: the least weight that stays, of the largest
  NumberOrTensor seed = 0;               // int32 or int64
  NumberOrTensor offset = 0;             // int32 or int64: another one draws anew
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// out = for each row of logits (..., vocabulary) an index, drawn with the weight
// exp(logit / temperature) among those that stay. logits: float32, float16 or bfloat16, any
// strides, 1 to 2^27 elements a row. out: int64, shape of logits without the last axis.
//
// Logits are ordered by value, of equals the lower index first. Then, in this order: top_k keeps
// the first top_k; top_p keeps the fewest first ones whose weight reaches top_p of what is left,
// one at least; min_p keeps those whose weight is at least min_p of the largest. Temperature 0
// gives the index of the largest, and so does a row whose largest is NaN, which is larger than any
// number, or an infinity: a row of -inf gives 0.
//
// Weights are whole numbers of 2^-36 of the largest, so sums are exact and every device and variant
// draws the same. A row draws twice, from Philox4x32-10 with the key `seed` and the counter
// (offset, 0), or (offset, row) if all rows have one seed: first which 1,024 neighbours, by their
// weights, then which of them. What else is in the batch changes nothing.
//
// Kind value for a number out of its range: temperature is finite and not negative, top_k at least
// 1, top_p in (0, 1], min_p in [0, 1]. A tensor is not looked at: temperature that is not above 0
// is 0, top_k below 1, top_p of 1 or more and min_p of 0 or less keep all, and top_p of 0 or less
// and min_p of 1 or more the largest. Nothing waits, and a graph reads the tensors at each replay.
void sample(const TensorView& out, const TensorView& logits, const SampleOptions& options = {});
Tensor sample(const TensorView& logits, const SampleOptions& options = {});

}  // namespace tensorcraft
