// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/tensorcraft.hpp"
#include "tests/support/tensors.hpp"
#include "tests/support/tolerance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

// Square products from 256 to 4096, and the small ones by which tensor cores of TF32 are known.
namespace tensorcraft::test {
namespace {

// Uniform in [-1, 1), rounded to a dtype.
Tensor uniform_tensor(int64_t n, DType dtype, uint32_t seed, Device device) {
  std::vector<float> all(size_t(n * n));
  for (float& x : all) {
    seed = seed * 1664525u + 1013904223u;
    x = float(int32_t(seed)) * 0x1p-31f;
  }
  return astype(Tensor::from(all, {n, n}, device), {.dtype = dtype});
}
std::vector<float> floats(const Tensor& t) { return values(astype(t)); }

// Empty if a thousand elements are the sums in double.
std::string compare_some(const std::vector<float>& d, const std::vector<float>& a,
                         const std::vector<float>& b, int64_t n, Tolerance tolerance) {
  std::mt19937 random(3);
  std::vector<float> got, expected;
  for (int i = 0; i < 1000; ++i) {
    const auto row = int64_t(random() % unsigned(n)), column = int64_t(random() % unsigned(n));
    double sum = 0;
    for (int64_t k = 0; k < n; ++k)
      sum += double(a[size_t(row * n + k)]) * b[size_t(k * n + column)];
    got.push_back(d[size_t(row * n + column)]);
    expected.push_back(float(sum));
  }
  return compare(got, expected, tolerance);
}

// Some elements against sums in double, and all of every variant against those of the first one.
void expect_right_product(int64_t n, DType dtype, Device device) {
  const Tensor a = uniform_tensor(n, dtype, 1, device), b = uniform_tensor(n, dtype, 2, device);
  const std::vector<float> x = floats(a), y = floats(b);
  const Tolerance allowed = tolerance(dtype, dtype, double(n), false);
  std::vector<float> first;
  int variants = 0;
  for (const op::VariantInfo& row : find_operator("gemm").description().variants) {
    if ((row.device == DeviceType::cpu) != (device == Device::cpu()) || row.name == "reference")
      continue;
    std::vector<float> d;
    try {
      d = floats(gemm(a, b, {.variant = row.name}));
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), ErrorKind::unsupported) << row.name << ": " << e.what();
      continue;
    }
    ++variants;
    const std::string what = join(row.name, ", ", dtype, ' ', n, "^3 on ", device);
    ASSERT_EQ(compare_some(d, x, y, n, allowed), "") << what;
    // Both may be rounded away from the sum.
    if (!first.empty()) {
      ASSERT_EQ(compare(d, first, {2 * allowed.relative}), "") << what;
    } else {
      first = std::move(d);
    }
  }
  EXPECT_GE(variants, device == Device::cpu() ? 1 : 4) << dtype;
}

TEST(GemmSizes, From256To1024AreRightOnTheCpu) {
  for (const int64_t n : {256, 512, 1024})
    for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16})
      expect_right_product(n, dtype, Device::cpu());
}

TEST(GemmSizes, From256To4096AreRightOn_gpu) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "there is no GPU";
  for (const int64_t n : {256, 512, 1024, 2048, 4096})
    for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16})
      expect_right_product(n, dtype, Device::cuda(0));
}

// 16 x 16 x k, row by row: the largest error that such a product is known to have with operands of
// 10 bits of mantissa, and less than 1e-3 of its norm.
TEST(GemmSizes, Tf32OfTensorCoresKeepsToTheTableOf16x16) {
  constexpr std::pair<int64_t, double> kLargest[] = {{8, 0.0055},  {16, 0.0089},  {32, 0.0094},
                                                     {64, 0.0205}, {128, 0.0247}, {256, 0.0373}};
  std::vector<Device> all = places();
  if (cuda_device_count() > 0) all.push_back(Device::cuda(0));
  for (const Device device : all) {
    if (device == Device::cpu()) continue;
    for (const auto& [k, largest] : kLargest) {
      const Tensor a = normal_tensor({16, k}, DType::float32, 1),
                   b = normal_tensor({k, 16}, DType::float32, 2),
                   exact = gemm(a, b, {.variant = "reference"});
      const Tensor here = a.to(device), there = b.to(device);
      for (const char* variant : {"tensor_core_tf32", "swizzled_tf32"}) {
        const auto got = doubles(gemm(here, there, {.allow_tf32 = true, .variant = variant}));
        double error = 0, squares = 0, norm = 0;
        for (int64_t i = 0; i < exact.size(); ++i) {
          const double off = std::abs(got[size_t(i)] - at(exact, i));
          error = std::max(error, off);
          squares += off * off;
          norm += double(at(exact, i)) * at(exact, i);
        }
        EXPECT_LE(error, largest) << variant << ", k " << k << " on " << device;
        EXPECT_GT(error, 1e-5) << variant << " rounds to more bits than TF32 has";
        EXPECT_LT(std::sqrt(squares / norm), 1e-3) << variant << ", k " << k << " on " << device;
      }
    }
  }
}

}  // namespace
}  // namespace tensorcraft::test
