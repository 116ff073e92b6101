// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>
#include <utility>

namespace tensorcraft {

// Reduces the losses of all rows: to the mean of those that count, to the sum, or not at all.
enum class LossReduction : int { mean, sum, none };

// Arguments of cross_entropy() besides the arrays that it needs.
struct CrossEntropyOptions {
  int64_t ignore_index = -100;                    // rows with this target have no loss
  LossReduction reduction = LossReduction::mean;  // of the losses
  bool return_lse = false;                        // the allocating form computes lse too
  std::optional<TensorView> lse = {};             // float32, shape of targets: log(sum(exp(row)))
  std::string_view variant = {};                  // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};           // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// The allocating form returns this.
struct CrossEntropyResult {
  Tensor out;  // float32: a number, or one for each target
  Tensor lse;  // if return_lse, else empty
  // Converts to out, so the result can be passed as a tensor.
  operator TensorView() const { return out; }  // NOLINT
  // Hands it over: Tensor y = ... takes the memory.
  operator Tensor() && { return std::move(out); }  // NOLINT
};

// The loss of a row is log(sum(exp(row))) - row[target], along the last axis of logits. logits:
// float32, float16 or bfloat16, rank 1 or more, any strides; targets: int32 or int64, the shape of
// logits without its last axis; computed in float32. out: float32, the shape of targets, or of one
// number if the losses are reduced: then always in the same order, and the mean is over the rows
// that are not ignored, NaN if there are none. An ignored row has loss 0, whatever its logits. A
// target that is neither a class nor ignore_index is an error of kind index on a host device, where
// nothing is written then; on a GPU, which cannot ask the host, its loss is NaN and nothing outside
// the row is read. So is the loss of a row with a NaN or +inf, or of nothing but -inf. Reducing
// takes memory for the losses for as long as the call runs on its stream.
// Kind unsupported for 2^30 classes or more.
void cross_entropy(const TensorView& out, const TensorView& logits, const TensorView& targets,
                   const CrossEntropyOptions& options = {});
CrossEntropyResult cross_entropy(const TensorView& logits, const TensorView& targets,
                                 const CrossEntropyOptions& options = {});

}  // namespace tensorcraft
