// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"

#include <array>
#include <cstdint>

namespace tensorcraft {

// A tensor and the box of it that one copy of the copy engine (TMA) moves. Dimension 0 is the
// innermost and contiguous.
struct TiledTensor {
  // How shared memory holds the box, and how much of it L2 fetches at once.
  enum class Swizzle { none, bytes_32, bytes_64, bytes_128 };
  enum class L2Promotion { none, bytes_64, bytes_128, bytes_256 };

  // Sizes in elements unless said otherwise.
  DType dtype = DType::float32;
  void* address = nullptr;  // a multiple of 16 bytes
  int rank = 0;             // 1 to 5
  std::array<uint64_t, 5> dims{};
  std::array<uint64_t, 4> strides{};  // bytes, of dimensions 1 and up: multiples of 16
  std::array<uint32_t, 5> box{};      // elements, at most 256 each
  // Every element_strides[i]-th element of the box moves; dimension 0 ignores its own.
  std::array<uint32_t, 5> element_strides{1, 1, 1, 1, 1};
  Swizzle swizzle = Swizzle::none;                    // of 16-byte parts, against bank conflicts
  L2Promotion l2_promotion = L2Promotion::bytes_128;  // fetched at once
  bool nan_fill = false;        // out-of-bounds elements read as NaN instead of zero
  bool rounds_to_tf32 = false;  // float32 elements are loaded with 10 bits of mantissa, the nearest
};

// Kind value, with the rule that is broken, if the copy engine cannot move such a box.
void check_tiled(const TiledTensor& tensor);

}  // namespace tensorcraft
