// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tiled_tensor.hpp"
#include "tensorcraft/device/float16.cuh"
#include "tests/simt/wgmma_tile.cuh"

#include <cmath>
#include <random>
#include <vector>

// Operands of tests/simt/wgmma_tile.cuh and what comes out.
namespace tensorcraft::test {

struct TileProblem {
  std::vector<bf16> a, b;
  std::vector<double> expected, magnitude;  // C, and the sum of its terms' magnitudes

  TileProblem() {
    namespace tile = kernel::wgmma_tile;
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (auto* operand : {&a, &b})
      for (int i = 0; i < 128 * tile::kK; ++i) operand->push_back(bf16(uniform(random)));
    for (size_t i = 0; i < tile::kM; ++i)
      for (size_t j = 0; j < tile::kN; ++j) {
        double sum = 0, size = 0;
        for (size_t k = 0; k < tile::kK; ++k) {
          const double term = double(float(a[i * tile::kK + k])) * float(b[j * tile::kK + k]);
          sum += term;
          size += std::fabs(term);
        }
        expected.push_back(sum);
        magnitude.push_back(size);
      }
  }

  // How far C is off, in units of 2^-18 of the terms' magnitudes; tensor cores stay below 1 for
  // each of the 16 instructions that add to an element.
  double worst_error(const std::vector<float>& c) const {
    double worst = 0;
    for (size_t i = 0; i < c.size(); ++i) {
      const double error = std::fabs(double(c[i]) - expected[i]) / (magnitude[i] * 0x1p-18);
      if (!(error <= worst)) worst = error;  // a NaN stays
      if (worst != worst) break;
    }
    return worst;
  }

  // An operand at `address` as the kernel's boxes.
  static TiledTensor tiled(void* address) {
    namespace tile = kernel::wgmma_tile;
    return {.dtype = DType::bfloat16,
            .address = address,
            .rank = 2,
            .dims = {tile::kK, 128},
            .strides = {tile::kK * sizeof(bf16)},
            .box = {tile::kBlockK, 128},
            .swizzle = TiledTensor::Swizzle::bytes_128};
  }
};

}  // namespace tensorcraft::test
