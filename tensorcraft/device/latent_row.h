// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"
#include "tensorcraft/device/float8.cuh"

// A row of a latent cache in 656 bytes, one for each token: DeepSeek's latent attention shares it
// between all heads. From its first byte on it has
//
//     bytes   0 .. 511   512 latent values as codes of float8_e4m3fn
//     bytes 512 .. 527   4 scales in float32, of 128 of these each
//     bytes 528 .. 655   64 values that rotate, in bfloat16
//
// Element d of its 576 is code d times scale d / 128, or behind the codes value d - 512. Rows begin
// at multiples of 16 bytes, and so do codes, scales and what rotates.
namespace tensorcraft {

struct LatentRow {
  static constexpr int kLatent = 512, kGroup = 128, kGroups = kLatent / kGroup, kRope = 64;
  static constexpr int kDim = kLatent + kRope;
  static constexpr int kScalesAt = kLatent, kRopeAt = kScalesAt + kGroups * int(sizeof(float));
  static constexpr int kBytes = kRopeAt + kRope * int(sizeof(bf16));
  static constexpr int kAlignment = 16;

  const uint8_t* bytes;

  TC_HOST_DEVICE float scale(int group) const {
    return reinterpret_cast<const float*>(bytes + kScalesAt)[group];
  }
  TC_HOST_DEVICE float operator[](int d) const {
    if (d < kLatent) return float(e4m3::from_bits(bytes[d])) * scale(d / kGroup);
    return float(reinterpret_cast<const bf16*>(bytes + kRopeAt)[d - kLatent]);
  }
};
static_assert(LatentRow::kBytes == 656 && LatentRow::kBytes % LatentRow::kAlignment == 0);

// The elements of a cache are the bytes of such rows.
template <class Code>
inline constexpr bool kIsRow = false;
template <>
inline constexpr bool kIsRow<uint8_t> = true;

// Where its parts are written.
struct LatentRowOut {
  uint8_t* bytes;

  TC_HOST_DEVICE e4m3& code(int d) const { return reinterpret_cast<e4m3*>(bytes)[d]; }
  TC_HOST_DEVICE float& scale(int group) const {
    return reinterpret_cast<float*>(bytes + LatentRow::kScalesAt)[group];
  }
  TC_HOST_DEVICE bf16& rope(int i) const {
    return reinterpret_cast<bf16*>(bytes + LatentRow::kRopeAt)[i];
  }
};

}  // namespace tensorcraft
