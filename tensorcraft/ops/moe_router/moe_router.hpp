// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Turns a logit x into e^x / sum(e^x) over all experts, 1 / (1 + e^-x), or sqrt(log(1 + e^x)).
enum class MoeScoring : int { softmax, sigmoid, sqrtsoftplus };

// Arguments of moe_router() besides the arrays that it needs.
struct MoeRouterOptions {
  int64_t k = 1;                             // experts of a token: 1 to 16
  MoeScoring scoring = MoeScoring::softmax;  // what a logit becomes
  std::optional<TensorView> bias = {};       // float32, (experts): added for the choice alone
  std::optional<int64_t> groups = {};        // of neighbouring experts, at most 32; none: one
  std::optional<int64_t> group_k = {};       // groups that a token may use; none: all
  bool renormalize = false;                  // weights of a token are divided by their sum
  float scale = 1;                           // of the weights, applied last
  // A further output, written if given: int32, shape of the weights.
  std::optional<TensorView> ids = {};
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// Both (tokens, k), an expert in each slot, the best first.
struct MoeRouterResult {
  Tensor weights, ids;  // float32; int32
  // Converts to weights, so the result can be passed as a tensor.
  operator TensorView() const { return weights; }  // NOLINT
  // Hands it over: Tensor y = ... takes the memory.
  operator Tensor() && { return std::move(weights); }  // NOLINT
};

// The k experts of each token, and their weights. logits: (tokens, experts), float32, float16 or
// bfloat16, any strides, 1 to 512 experts. Scores are float32. Experts are chosen by their score,
// or by score + bias, the largest first and of equals the lower index first; without a bias the
// logits are compared, which have the order of the scores and no ties by rounding. A NaN is larger
// than any number. With groups a token has the experts of its group_k best groups alone: a group is
// as good as its best expert, with a bias as the sum of its two best. The weights are the scores of
// the chosen, without the bias; renormalize divides them by their sum, or by 1e-20 if that is
// larger; then they are multiplied by scale. What else is in the batch changes no bit of a token.
// Kind value if k is not in [1, 16] or its groups have fewer experts. Routing of DeepSeek-V3
// (arXiv 2412.19437, 2.1.2): sigmoid, bias, groups, renormalize and scale.
void moe_router(const TensorView& weights, const TensorView& logits,
                const MoeRouterOptions& options = {});
MoeRouterResult moe_router(const TensorView& logits, const MoeRouterOptions& options = {});

}  // namespace tensorcraft
