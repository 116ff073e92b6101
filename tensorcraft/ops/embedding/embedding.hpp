// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of embedding() besides the arrays that it needs.
struct EmbeddingOptions {
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// out[i..., :] = table[ids[i...], :]. ids: int32 or int64, any shape; table: [rows, dim] of any
// float dtype; out: ids.shape + [dim], dtype of table. Strides are free. An id outside [0, rows) is
// an error of kind index on a host device, and nothing is written then; on a GPU, which cannot
// ask the host, its row becomes NaN and nothing outside the table is read.
void embedding(const TensorView& out, const TensorView& ids, const TensorView& table,
               const EmbeddingOptions& options = {});
Tensor embedding(const TensorView& ids, const TensorView& table,
                 const EmbeddingOptions& options = {});

}  // namespace tensorcraft
