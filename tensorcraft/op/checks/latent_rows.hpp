// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/op/checks/cache_layout.hpp"

#include <string_view>

namespace tensorcraft::op {

// A cache of rows as device/latent_row.h has them, as [blocks, block_size, 1, 656]. Kind value
// unless it is [blocks, block_size, 656], or has an axis of one head where `layout` says, and rows
// are contiguous and begin at multiples of 16 bytes.
TensorView latent_rows(std::string_view op, std::string_view name, const TensorView& cache,
                       CacheLayout layout);

}  // namespace tensorcraft::op
