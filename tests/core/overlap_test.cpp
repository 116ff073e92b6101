// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/tensor_view.hpp"

#include <functional>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

// Bytes that nobody reads: addresses of views alone are looked at.
alignas(16) std::byte room[1 << 20];

TensorView view_at(int64_t byte, DType dtype, const Dims& shape, const Dims& strides) {
  return {room + byte, dtype, shape, strides, Device::cpu()};
}

// Calls f with the offset of each element, in bytes from `room`.
void for_each_element(const TensorView& t, const std::function<void(int64_t)>& f) {
  for (int64_t i = 0; i < t.size(); ++i) {
    int64_t rest = i, at = t.data_as<std::byte>() - room;
    for (int axis = t.rank() - 1; axis >= 0; --axis) {
      at += rest % t.shape(axis) * t.stride(axis) * int64_t(dtype_bytes(t.dtype()));
      rest /= t.shape(axis);
    }
    f(at);
  }
}

std::set<int64_t> bytes_of(const TensorView& t) {
  std::set<int64_t> bytes;
  for_each_element(t, [&](int64_t at) {
    for (size_t b = 0; b < dtype_bytes(t.dtype()); ++b) bytes.insert(at + int64_t(b));
  });
  return bytes;
}

TensorView random_view(std::mt19937& random) {
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  constexpr DType kDtypes[] = {DType::int8, DType::float16, DType::float32, DType::int64};
  const int rank = int(pick(0, 4));
  Dims shape, strides;
  for (int i = 0; i < rank; ++i) {
    shape.push_back(pick(1, 4));
    strides.push_back(pick(-9, 9));
  }
  return view_at(2048 + 2 * pick(0, 60), kDtypes[pick(0, 3)], shape, strides);
}

TEST(Overlap, OfSmallViewsIsWhatTheirBytesSay) {
  std::mt19937 random(1);
  int certain = 0;
  for (int i = 0; i < 20000; ++i) {
    const TensorView a = random_view(random), b = random_view(random);
    const auto x = bytes_of(a), y = bytes_of(b);
    bool expected = false;
    for (const int64_t byte : x) expected |= y.contains(byte);
    ASSERT_EQ(overlap_of(a, b), expected ? Overlap::certain : Overlap::none)
        << a << " at " << a.data_as<std::byte>() - room << " and " << b << " at "
        << b.data_as<std::byte>() - room;
    ASSERT_EQ(may_overlap(b, a), expected);
    certain += expected;
  }
  EXPECT_GT(certain, 2000);
  EXPECT_LT(certain, 18000);
}

TEST(Overlap, OfAViewWithItselfIsWhatItsElementsSay) {
  std::mt19937 random(2);
  int shared = 0;
  for (int i = 0; i < 20000; ++i) {
    const TensorView t = random_view(random);
    std::set<int64_t> elements;
    for_each_element(t, [&](int64_t at) { elements.insert(at); });
    const bool expected = int64_t(elements.size()) < t.size();
    ASSERT_EQ(overlaps_itself(t), expected) << t;
    shared += expected;
  }
  EXPECT_GT(shared, 2000);
  EXPECT_LT(shared, 18000);
}

// Slices of one buffer, too large to count bytes.
class OverlapOfSlices : public testing::Test {
 protected:
  // Larger than `room`: no byte is read.
  TensorView packed{room, DType::float16, {64, 4096, 96, 128}};
};

TEST_F(OverlapOfSlices, OfAPackedProjectionAreApart) {
  const TensorView q = packed.slice(2, 0, 64), k = packed.slice(2, 64, 80),
                   v = packed.slice(2, 80, 96);
  for (const auto& [a, b] : {std::pair(q, k), std::pair(q, v), std::pair(k, v)})
    EXPECT_EQ(overlap_of(a, b), Overlap::none);
  EXPECT_EQ(overlap_of(packed.slice(2, 0, 65), k), Overlap::certain);
  EXPECT_EQ(overlap_of(q.slice(1, 1, 4096), k.slice(1, 0, 4095)), Overlap::none);
  EXPECT_EQ(overlap_of(q.transpose(1, 2), k.transpose(0, 3)), Overlap::none);
  EXPECT_EQ(overlap_of(packed, v), Overlap::certain);
}

TEST_F(OverlapOfSlices, OfHalvesInterleavedOrSideBySideAreApart) {
  const TensorView low = packed.slice(3, 0, 64), high = packed.slice(3, 64, 128);
  EXPECT_EQ(overlap_of(low, high), Overlap::none);
  EXPECT_EQ(overlap_of(packed.slice(3, 0, 128, 2), packed.slice(3, 1, 128, 2)), Overlap::none);
  EXPECT_EQ(overlap_of(packed.slice(3, 0, 128, 6), packed.slice(3, 1, 128, 4)), Overlap::none);
  EXPECT_EQ(overlap_of(packed.slice(3, 0, 128, 3), packed.slice(3, 1, 128, 4)), Overlap::certain);
  EXPECT_EQ(overlap_of(packed.slice(1, 0, 4096, 2), packed.slice(1, 1, 4096, 2)), Overlap::none);
}

TEST_F(OverlapOfSlices, OfShiftedOrTransposedViewsIsCertain) {
  EXPECT_EQ(overlap_of(packed.slice(0, 1, 64), packed.slice(0, 0, 63)), Overlap::certain);
  const TensorView square(room, DType::float32, {512, 512});
  EXPECT_EQ(overlap_of(square, square.transpose(0, 1)), Overlap::certain);
  EXPECT_EQ(overlap_of(square.slice(0, 0, 256), square.slice(0, 256, 512).transpose(0, 1)),
            Overlap::none);
  const TensorView low = square.slice(0, 1, 512), high = square.slice(1, 1, 512).transpose(0, 1);
  EXPECT_EQ(overlap_of(low, high), Overlap::certain);
}

TEST_F(OverlapOfSlices, OfViewsWithoutMemoryOrElementsOrOnTwoDevicesAreApart) {
  const TensorView nowhere(nullptr, DType::float32, {4});
  EXPECT_EQ(overlap_of(nowhere, nowhere), Overlap::none);
  EXPECT_EQ(overlap_of(packed, packed.slice(0, 0, 0)), Overlap::none);
  const TensorView elsewhere(room, DType::float16, {4}, Device::cuda(0));
  EXPECT_EQ(overlap_of(packed, elsewhere), Overlap::none);
  const TensorView other_gpu(room, DType::float16, {4}, Device::cuda(1));
  EXPECT_EQ(overlap_of(other_gpu, elsewhere), Overlap::none);
}

TEST(Overlap, IsNotKnownIfStridesInterleaveInTooManyWays) {
  // Sixteen of these odd steps lead to even distances from each other, so no sum is one beyond the
  // sixteen smallest ones; but there are many sums to try.
  const TensorView knot = view_at(0, DType::int8, {5, 5, 5, 5, 5, 5, 5, 5},
                                  {1007, 1009, 1013, 1019, 1021, 1031, 1033, 1039});
  const TensorView element = view_at(16 * 1007 + 1, DType::int8, {1}, {1});
  EXPECT_EQ(overlap_of(knot, element), Overlap::maybe);
  EXPECT_TRUE(may_overlap(knot, element));
  const TensorView reached = view_at(16 * 1007 + 2, DType::int8, {1}, {1});
  EXPECT_NE(overlap_of(knot, reached), Overlap::none);
}

TEST(Overlap, RangesAreTheBytesFromTheAddressOn) {
  const ByteRange back = byte_range(view_at(64, DType::float32, {3, 4}, {4, -1}));
  EXPECT_EQ(back.begin, -12);
  EXPECT_EQ(back.end, 36);
  const ByteRange none = byte_range(view_at(0, DType::float32, {0, 4}, {4, 1}));
  EXPECT_EQ(none.begin, 0);
  EXPECT_EQ(none.end, 0);
}

}  // namespace
}  // namespace tensorcraft
