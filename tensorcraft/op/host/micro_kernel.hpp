// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>

namespace tensorcraft::host {

// The inner product of gemm: out[i][j] (+)= sum over p of a[p][i] * b[p][j] for a tile of rows x
// columns floats, all of it in registers. a is packed by `rows`, b by `columns`, b 64-byte aligned;
// neighbouring rows of out are `stride` floats apart. `accumulate` adds to what out holds.
struct MicroKernel {
  int rows = 0, columns = 0;
  void (*run)(int64_t k, const float* a, const float* b, float* out, int64_t stride,
              bool accumulate) = nullptr;
};

// Code compiled for x86-64-v4 and x86-64-v3 needs these.
bool has_avx512();
bool has_avx2();

// Returns the kernels that this machine can run, best first: AVX-512, AVX2 with FMA, plain vectors
// of 16 bytes.
std::span<const MicroKernel> micro_kernels();
inline const MicroKernel& micro_kernel() { return micro_kernels().front(); }

}  // namespace tensorcraft::host
