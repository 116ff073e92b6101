// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/rope/rope.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/diagnose/request.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;
using test::normal_tensor;
using test::values;

Tensor counting(int64_t count) {
  Tensor t(DType::int64, {count});
  std::iota(t.data_as<int64_t>(), t.data_as<int64_t>() + count, 0);
  return t;
}

double dot(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += double(a[i]) * b[i];
  return sum;
}

// The devices whose memory the host reads.
std::vector<Device> host_devices() {
  std::vector<Device> all{Device::cpu()};
  if (devices().back() == Device::simt()) all.push_back(Device::simt());
  return all;
}

// Attention sees this: q at position m with k at n gives what it gives at m + 1000 with n + 1000.
TEST(Rope, ProductsDependOnTheDistanceOfPositionsAlone) {
  std::mt19937 random(1);
  const Tensor q = normal_tensor({1, 1, 64}, random), k = normal_tensor({1, 1, 64}, random);
  for (const RopeStyle style : {RopeStyle::Half, RopeStyle::Interleaved}) {
    const auto product = [&](int64_t m, int64_t n) {
      const Tensor a = rope(q, {.start_pos = m, .style = style}).out;
      const Tensor b = rope(k, {.start_pos = n, .style = style}).out;
      return dot(a.data_as<float>(), b.data_as<float>(), 64);
    };
    EXPECT_NEAR(product(7, 3), product(1007, 1003), 1e-4);
    EXPECT_GT(std::abs(product(7, 3) - product(9, 3)), 1e-3);
  }
}

TEST(Rope, TurnsTheFirstPairByOneRadianAPosition) {
  std::vector<float> in = {1, 0, 0, 0};
  const TensorView x(in.data(), DType::float32, {1, 1, 4});
  const Tensor half = rope(x, {.start_pos = 2}).out;
  EXPECT_NEAR(half.data_as<float>()[0], std::cos(2.0), 1e-6);
  EXPECT_NEAR(half.data_as<float>()[2], std::sin(2.0), 1e-6);
  const Tensor pairs = rope(x, {.start_pos = 2, .style = RopeStyle::Interleaved}).out;
  EXPECT_NEAR(pairs.data_as<float>()[1], std::sin(2.0), 1e-6);
}

TEST(Rope, CachedAndComputedAnglesAgreeAndXMayBeOut) {
  std::mt19937 random(3);
  for (const Device device : host_devices()) {
    Tensor x = normal_tensor({2, 3, 2, 16}, random, 0, 1, device);
    const Tensor positions = counting(10);
    const Tensor cache = rope_cache(positions.view(), {.dim = 16, .base = 500});
    Tensor angles(DType::float32, cache.shape(), device);
    std::copy_n(cache.data_as<float>(), cache.size(), angles.data_as<float>());
    const TensorView cos = angles.view().select(0, 0), sin = angles.view().select(0, 1);
    const auto computed = values(rope(x, {.start_pos = 7, .base = 500}).out);
    rope(x, x, {.cos = cos, .sin = sin, .start_pos = 7});
    const auto cached = values(x);
    for (size_t i = 0; i < cached.size(); ++i) EXPECT_NEAR(cached[i], computed[i], 2e-6) << device;
  }
}

TEST(Rope, RotatesKeysAsItDoesQueries) {
  std::mt19937 random(4);
  const Tensor q = normal_tensor({2, 3, 4, 8}, random), k = normal_tensor({2, 3, 1, 8}, random);
  for (const char* variant : {"cpu", "reference"}) {
    const RopeResult both = rope(q, {.k = k.view(), .start_pos = 5, .variant = variant});
    EXPECT_EQ(values(both.out), values(rope(q, {.start_pos = 5, .variant = variant}).out));
    EXPECT_EQ(values(both.k_out), values(rope(k, {.start_pos = 5, .variant = variant}).out));
  }
}

TEST(Rope, RefusesPositionsOutsideTheCacheBeforeItWrites) {
  std::vector<float> in(8, 1), result(8, -7);
  std::vector<int64_t> at = {2, 3};
  const TensorView x(in.data(), DType::float32, {2, 1, 4}),
      out(result.data(), DType::float32, {2, 1, 4}), positions(at.data(), DType::int64, {2});
  const Tensor count = counting(3), cache = rope_cache(count, {.dim = 4});
  const TensorView cos = cache.view().select(0, 0), sin = cache.view().select(0, 1);
  for (const char* variant : {"cpu", "reference"}) {
    expect_error(
        ErrorKind::index,
        [&] { rope(out, x, {.cos = cos, .sin = sin, .positions = positions, .variant = variant}); },
        "rope: positions: that of token 1 is 3, expected [0, 3), the rows of cos");
    expect_error(
        ErrorKind::index,
        [&] { rope(out, x, {.cos = cos, .sin = sin, .start_pos = 2, .variant = variant}); },
        "rope: start_pos must be in [0, 1], got 2 (2 tokens, 3 rows of cos)");
  }
  at[1] = -1;
  EXPECT_THROW(rope(out, x, {.cos = cos, .sin = sin, .positions = positions}), Error);
  EXPECT_EQ(result, std::vector<float>(8, -7));
}

TEST(Rope, OnADeviceAPositionOutsideTheCacheMakesItsTokenNan) {
  if (devices().back() != Device::simt()) GTEST_SKIP() << "built without the emulator";
  std::vector<float> in(3 * 5 * 32, 1);
  std::vector<int32_t> at = {0, 3, -1};
  const Device simt = Device::simt();
  const TensorView x(in.data(), DType::float32, {3, 5, 32}, simt),
      positions(at.data(), DType::int32, {3}, simt);
  Tensor angles(DType::float32, {2, 3, 16}, simt);
  std::fill_n(angles.data_as<float>(), angles.size(), 0.5f);
  const TensorView cos = angles.view().select(0, 0), sin = angles.view().select(0, 1);
  for (const char* variant : {"naive", "vectorized"}) {
    const Tensor y =
        rope(x, {.cos = cos, .sin = sin, .positions = positions, .variant = variant}).out;
    for (int i = 0; i < 480; ++i)
      EXPECT_EQ(std::isnan(y.data_as<float>()[i]), i >= 160) << variant << " " << i;
  }
}

TEST(Rope, RefusesWhatItCannotRotate) {
  Tensor x(DType::float32, {2, 1, 4}), odd(DType::float32, {2, 1, 3}), k(DType::float32, {2, 2, 4}),
      matrix(DType::float32, {2, 4}), half(DType::float32, {8, 2}), three(DType::int64, {3});
  expect_error(
      ErrorKind::value, [&] { rope(odd); },
      "rope: x: the last axis must have an even length, its elements rotate in pairs, got shape "
      "[2, 1, 3]");
  expect_error(
      ErrorKind::value, [&] { rope(matrix); },
      "rope: x: expected [..., tokens, heads, dim], got shape [2, 4]");
  expect_error(
      ErrorKind::value, [&] { rope(x, {.cos = half.view()}); },
      "rope: give both cos and sin, or neither");
  expect_error(
      ErrorKind::value, [&] { rope(x, {.positions = three.view()}); },
      "rope: positions: expected shape [2] or [2], got [3]");
  expect_error(
      ErrorKind::value, [&] { rope(x, {.base = 0}); },
      "rope: base must be above 0 and finite, got 0");
  expect_error(
      ErrorKind::value, [&] { rope(x, x, {.k = k.view()}); },
      "rope: k_out is k rotated; give both or neither");
  Tensor same(DType::float32, {2, 1, 4}), other(DType::float32, {2, 1, 4});
  expect_error(
      ErrorKind::value, [&] { rope(same, x, {.k = same.view(), .k_out = other.view()}); },
      "rope: out overlaps the memory of k; give it memory of its own");
  EXPECT_THROW(rope(x, {.k = odd.view()}), Error);
  EXPECT_THROW(rope(x, {.cos = odd.view(), .sin = odd.view()}), Error);
}

// One projection holds q, k and v beside each other; q and k turn where they lie.
TEST(Rope, TurnsSlicesOfOnePackedProjectionInPlace) {
  std::mt19937 random(4);
  for (const Device device : host_devices())
    for (const std::string_view variant :
         device == Device::cpu() ? std::vector<std::string_view>{"cpu", "reference"}
                                 : std::vector<std::string_view>{"naive", "vectorized"}) {
      const Tensor packed = normal_tensor({2, 5, 2 + 2 * 2, 32}, random, 0, 1, device);
      const std::vector<float> before = values(packed);
      const TensorView q = packed.view().slice(2, 0, 2), k = packed.view().slice(2, 2, 4);
      const RopeResult apart = rope(q, {.k = k, .start_pos = 3, .variant = variant});
      rope(q, q, {.k = k, .start_pos = 3, .k_out = k, .variant = variant});
      const std::vector<float> after = values(packed), out = values(apart.out),
                               k_out = values(apart.k_out);
      for (size_t token = 0; token < 10; ++token)
        for (size_t e = 0; e < 6 * 32; ++e) {
          const float got = after[token * 192 + e];
          const float expected = e < 64    ? out[token * 64 + e]
                                 : e < 128 ? k_out[token * 64 + e - 64]
                                           : before[token * 192 + e];  // v stays
          ASSERT_EQ(got, expected) << variant;
        }
      EXPECT_THROW(rope(q, q, {.k = packed.view().slice(2, 1, 3), .k_out = k}), Error);
    }
}

TEST(Rope, IsExplainedWithoutMemory) {
  const auto text = diagnose::parse_request(
      "rope 4x8x32 --option k=4x2x32 --option cos=8x16 --option sin=8x16 --option start_pos=2");
  const diagnose::Request request(find_operator("rope"), text, device_info_of_arch("sm_90a"));
  const op::Explanation e = request.explain();
  EXPECT_EQ(e.variant, "vectorized");
  EXPECT_NE(op::config_text(e.variants[0].plan->steps()[0]).find("has_cache = 1"),
            std::string::npos);
}

TEST(RopeCache, RefusesAnOddDimAndADtypeThatIsNoFloat) {
  const Tensor positions = counting(3);
  expect_error(
      ErrorKind::value, [&] { rope_cache(positions, {.dim = 3}); },
      "rope_cache: dim must be even and at least 2, got 3");
  expect_error(
      ErrorKind::type, [&] { rope_cache(positions, {.dim = 4, .dtype = DType::int8}); },
      "rope_cache: dtype must be float32, float16 or bfloat16, got int8");
}

}  // namespace
}  // namespace tensorcraft
