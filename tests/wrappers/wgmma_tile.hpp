// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/wgmma.cuh"

#include <cstddef>
#include <cstdint>

namespace tensorcraft::test {

// One operand of wgmma in memory, by the plain description of its layout and not by the library's
// functions: a table of rows as wide as the swizzle's span, in which row r's 16-byte units are
// stored in another order. Holds as many values of k as one row has (k-major), or 16 (mn-major).
struct WgmmaTile {
  Swizzle swizzle;
  Major major;
  int element_bytes;
  int extent;  // of m or n

  int span() const { return swizzle == Swizzle::none ? 16 : 16 << int(swizzle); }

  // Which unit of its row takes unit `unit`'s place.
  int moved(int row, int unit) const {
    switch (swizzle) {
      case Swizzle::none:
        return unit;
      case Swizzle::bytes_32:
        return unit ^ (row / 4 % 2);
      case Swizzle::bytes_64:
        return unit ^ (row / 2 % 4);
      case Swizzle::bytes_128:
        return unit ^ (row % 8);
    }
    return unit;
  }

  size_t place(int row, int byte) const {
    return size_t(row * span() + moved(row, byte / 16) * 16 + byte % 16);
  }

  // The offset of element i along m or n and l along k.
  size_t offset(int i, int l) const {
    if (major == Major::k) {
      const int byte = l * element_bytes;
      // Without a swizzle the two units of k are two tables, one after the other.
      if (swizzle == Swizzle::none) return place(byte / 16 * extent + i, byte % 16);
      return place(i, byte);
    }
    // One table of 16 rows (k) for each span of m or n.
    const int byte = i * element_bytes;
    return place(byte / span() * 16 + l, byte % span());
  }

  size_t bytes() const {
    return major == Major::k ? size_t(extent * (swizzle == Swizzle::none ? 32 : span()))
                             : size_t(extent * element_bytes * 16);
  }

  // How the descriptor says it.
  WgmmaOperand operand(uint32_t address) const {
    WgmmaOperand o{.address = address, .leading = 16, .stride = 0, .swizzle = swizzle};
    const auto rows = [&](int count) { return uint32_t(count * span()); };
    if (major == Major::k) {
      o.stride = rows(8);
      if (swizzle == Swizzle::none) o.leading = rows(extent);
    } else if (swizzle == Swizzle::none) {
      o.stride = rows(16);
      o.leading = rows(8);
    } else {
      o.stride = rows(8);
      o.leading = rows(16);
    }
    return o;
  }
};

}  // namespace tensorcraft::test
