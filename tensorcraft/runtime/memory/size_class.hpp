// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstddef>

// The sizes that a pool hands out: steps of 256 bytes to 2 KiB, eight classes to a doubling above,
// multiples of 1 MiB above 256 MiB. Above 4 KiB rounding adds at most an eighth.
namespace tensorcraft::memory {

inline constexpr size_t kGranule = 256;  // of sizes and of addresses
inline constexpr size_t kMaxBytes = size_t(1) << 47;
inline constexpr int kClassesPerDoubling = 8;

constexpr size_t round_up(size_t bytes, size_t step) { return (bytes + step - 1) / step * step; }

// The class of a request: 0 for 0 bytes, and for more than kMaxBytes, which no device has.
constexpr size_t class_bytes(size_t bytes) {
  constexpr size_t kFine = size_t(2) << 10, kCoarse = size_t(256) << 20, kMiB = size_t(1) << 20;
  if (bytes > kMaxBytes) return 0;
  if (bytes <= kFine) return round_up(bytes, kGranule);
  if (bytes > kCoarse) return round_up(bytes, kMiB);
  return round_up(bytes, std::bit_floor(bytes - 1) / kClassesPerDoubling);
}

// Free memory is kept in bins: one for each multiple of the granule below eight of them, then
// eight to a doubling. A bin holds sizes from its own least one to just below the next bin's.
inline constexpr int kBins = 7 + (47 - 8 - 3 + 1) * kClassesPerDoubling;

constexpr int bin_of(size_t bytes) {
  const size_t units = bytes / kGranule;
  if (units < kClassesPerDoubling) return int(units) - 1;
  const int log = int(std::bit_width(units)) - 1;
  return 7 + (log - 3) * kClassesPerDoubling + int((units >> (log - 3)) % kClassesPerDoubling);
}
// The least size of a bin.
constexpr size_t least_of_bin(int bin) {
  if (bin < 7) return size_t(bin + 1) * kGranule;
  const int log = (bin - 7) / kClassesPerDoubling;
  return (size_t(kClassesPerDoubling + (bin - 7) % kClassesPerDoubling) << log) * kGranule;
}

}  // namespace tensorcraft::memory
