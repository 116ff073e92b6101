// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/concepts.h"
#include "tensorcraft/device/vec.cuh"

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

template <class T, int N>
constexpr bool kAlignedToItsSize =
    alignof(AlignedVector<T, N>) == sizeof(T) * N && sizeof(AlignedVector<T, N>) == sizeof(T) * N;
template <class T>
constexpr bool kEveryWidthIsAligned =
    kAlignedToItsSize<T, 2> && kAlignedToItsSize<T, 4> && kAlignedToItsSize<T, 8>;
static_assert(kEveryWidthIsAligned<float>);
static_assert(kEveryWidthIsAligned<f16>);
static_assert(kEveryWidthIsAligned<bf16>);
static_assert(kEveryWidthIsAligned<int8_t>);
static_assert(std::is_same_v<Vec2<float>, AlignedVector<float, 2>>);
static_assert(std::is_same_v<Vec4<f16>, AlignedVector<f16, 4>>);
static_assert(std::is_same_v<Vec8<bf16>, AlignedVector<bf16, 8>>);
static_assert(kVectorSize<float> == 4 && kVectorSize<bf16> == 8 && kVectorSize<e4m3> == 16);

static_assert(is_half_v<f16> && is_half<bf16>::value);
static_assert(!is_half_v<float> && !is_half_v<uint16_t> && !is_half_v<e4m3>);
static_assert(FloatingPoint<float> && FloatingPoint<double> && FloatingPoint<f16> &&
              FloatingPoint<bf16> && FloatingPoint<e4m3> && FloatingPoint<e5m2>);
static_assert(!FloatingPoint<int> && !FloatingPoint<float*>);

template <class T>
constexpr bool numeric(bool expected) {
  return Numeric<T> == expected && is_numeric_v<T> == expected && is_numeric<T>::value == expected;
}
static_assert(numeric<bool>(true) && numeric<int8_t>(true) && numeric<uint8_t>(true) &&
              numeric<int16_t>(true) && numeric<int>(true) && numeric<int64_t>(true) &&
              numeric<size_t>(true) && numeric<long long>(true) && numeric<float>(true) &&
              numeric<f16>(true) && numeric<bf16>(true) && numeric<e4m3>(true) &&
              numeric<e5m2>(true));
static_assert(numeric<void>(false) && numeric<int*>(false) && numeric<std::string>(false) &&
              numeric<Vec4<float>>(false));

static_assert(div_ceil(0, 7) == 0 && div_ceil(1, 7) == 1 && div_ceil(7, 7) == 1 &&
              div_ceil(8, 7) == 2);
static_assert(std::is_same_v<decltype(div_ceil(1, size_t(2))), size_t>);
static_assert(std::is_same_v<decltype(div_ceil(int64_t(1), 2)), int64_t>);
static_assert(div_ceil(std::numeric_limits<int>::max(), 2) == 1 << 30);
static_assert(div_ceil(std::numeric_limits<int64_t>::max(), 2) == int64_t(1) << 62);
static_assert(div_ceil(std::numeric_limits<size_t>::max(), 2) == size_t(1) << 63);
static_assert(div_ceil(std::numeric_limits<size_t>::max(), 1) ==
              std::numeric_limits<size_t>::max());
static_assert(div_ceil(std::numeric_limits<int>::max(), size_t(1) << 40) == 1);
static_assert(round_up(13, 8) == 16 && round_up(16, 8) == 16 && round_up(0, 8) == 0);

TEST(Vec, LoadsAndStoresNeighbouringValues) {
  alignas(16) bf16 from[16], to[16];
  for (int i = 0; i < 16; ++i) from[i] = bf16(float(i));
  Vec8<bf16> v = load_vector<8>(from + 8);
  v[0] = bf16(100.0f);
  store_vector(to, v);
  EXPECT_EQ(float(to[0]), 100.0f);
  for (int i = 1; i < 8; ++i) EXPECT_EQ(float(to[i]), float(8 + i));
}

}  // namespace
}  // namespace tensorcraft
