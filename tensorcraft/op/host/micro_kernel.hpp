// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace tensorcraft::host {

// The inner product of gemm: out[i][j] (+)= sum over p of a[p][i] * b[p][j] for a tile of rows x
// columns floats, all of it in registers. a is packed by `rows`, b by `columns`, b 64-byte aligned;
// neighbouring rows of out are `stride` floats apart. `accumulate` adds to what out holds.
struct MicroKernel {
  int rows = 0, columns = 0;
  void (*run)(int64_t k, const float* a, const float* b, float* out, int64_t stride,
              bool accumulate) = nullptr;
};

// The best one for this machine: AVX-512, AVX2 with FMA, or plain vectors of 16 bytes.
const MicroKernel& micro_kernel();

}  // namespace tensorcraft::host
