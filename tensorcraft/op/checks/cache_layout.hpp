// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/value.hpp"

#include <array>
#include <string_view>

namespace tensorcraft {

// The order of the dimensions of a paged cache of keys or values: blocks, block_size, heads_k,
// head_dim (nhd), or blocks, heads_k, block_size, head_dim (hnd).
enum class CacheLayout : int { nhd, hnd };

}  // namespace tensorcraft

template <>
struct tensorcraft::op::EnumNames<tensorcraft::CacheLayout> {
  static constexpr std::array<std::string_view, 2> names = {"nhd", "hnd"};
};
