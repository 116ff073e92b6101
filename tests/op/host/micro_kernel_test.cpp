// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/micro_kernel.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tensorcraft::host {
namespace {

// Small integers: every sum is exact, so the order of additions does not matter.
float value(int64_t i) { return float((i * 7 + 3) % 11 - 5); }

TEST(MicroKernel, EveryOneOfThisMachineMultipliesATile) {
  for (const MicroKernel& kernel : micro_kernels())
    for (const int64_t k : {0, 1, 2, 37})
      for (const bool accumulate : {false, true}) {
        const int64_t stride = kernel.columns + 5;
        alignas(64) float b[64 * 64];
        std::vector<float> a(k * kernel.rows), out(kernel.rows * stride, 3.0f);
        for (size_t i = 0; i < a.size(); ++i) a[i] = value(int64_t(i));
        for (int64_t i = 0; i < k * kernel.columns; ++i) b[i] = value(i + 5);
        kernel.run(k, a.data(), b, out.data(), stride, accumulate);
        for (int64_t i = 0; i < kernel.rows; ++i)
          for (int64_t j = 0; j < stride; ++j) {
            float expected = accumulate || j >= kernel.columns ? 3.0f : 0.0f;
            if (j < kernel.columns)
              for (int64_t p = 0; p < k; ++p)
                expected += a[p * kernel.rows + i] * b[p * kernel.columns + j];
            ASSERT_EQ(out[i * stride + j], expected) << kernel.rows << " " << i << " " << j;
          }
      }
}

TEST(MicroKernel, TheLastNeedsNoSpecialInstructions) {
  EXPECT_EQ(micro_kernels().back().rows, 4);
  EXPECT_EQ(micro_kernels().back().columns, 8);
  EXPECT_EQ(&micro_kernel(), &micro_kernels().front());
}

}  // namespace
}  // namespace tensorcraft::host
