// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

struct EmbeddingOptions {
  std::string_view variant = {};
  std::optional<StreamRef> stream = {};
};

// out[i..., :] = table[ids[i...], :]. ids: int32 or int64, any shape; table: [rows, dim] of any
// float dtype; out: ids.shape + [dim], dtype of table. Strides are free. An id outside [0, rows) is
// an error of kind index on a host device, where nothing is written then; on a GPU, which cannot
// ask the host, its row becomes NaN and nothing outside the table is read.
void embedding(const TensorView& out, const TensorView& ids, const TensorView& table,
               const EmbeddingOptions& options = {});
Tensor embedding(const TensorView& ids, const TensorView& table,
                 const EmbeddingOptions& options = {});

}  // namespace tensorcraft
