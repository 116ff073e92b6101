// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/micro_kernel.hpp"

#include "tensorcraft/core/first_made.hpp"

#include <vector>

namespace tensorcraft::host {
namespace {

// A macro and no template: the compiler splits wide vectors before it inlines, by the target of the
// function they are written in, so each body must be written in a function of its own target.
// Two vectors of b and one broadcast of a feed 2 * kRows independent sums.
#define TC_MICRO_KERNEL(name, attribute, kRows, kBytes)                                      \
  attribute void name(int64_t k, const float* a, const float* b, float* out, int64_t stride, \
                      bool accumulate) {                                                     \
    typedef float Vector __attribute__((vector_size(kBytes), may_alias));                    \
    typedef float Unaligned __attribute__((vector_size(kBytes), aligned(4), may_alias));     \
    constexpr int kWidth = kBytes / sizeof(float);                                           \
    Vector sums[kRows][2];                                                                   \
    _Pragma("GCC unroll 16") for (int i = 0; i < kRows; ++i) {                               \
      sums[i][0] = Vector{};                                                                 \
      sums[i][1] = Vector{};                                                                 \
    }                                                                                        \
    for (int64_t p = 0; p < k; ++p, a += kRows, b += 2 * kWidth) {                           \
      const Vector b0 = *reinterpret_cast<const Vector*>(b);                                 \
      const Vector b1 = *reinterpret_cast<const Vector*>(b + kWidth);                        \
      _Pragma("GCC unroll 16") for (int i = 0; i < kRows; ++i) {                             \
        sums[i][0] += a[i] * b0;                                                             \
        sums[i][1] += a[i] * b1;                                                             \
      }                                                                                      \
    }                                                                                        \
    _Pragma("GCC unroll 16") for (int i = 0; i < kRows; ++i, out += stride) {                \
      Unaligned* row = reinterpret_cast<Unaligned*>(out);                                    \
      row[0] = accumulate ? row[0] + sums[i][0] : sums[i][0];                                \
      row[1] = accumulate ? row[1] + sums[i][1] : sums[i][1];                                \
    }                                                                                        \
  }

TC_MICRO_KERNEL(run_plain, , 4, 16)
#if defined(__x86_64__)
TC_MICRO_KERNEL(run_avx2, __attribute__((target("arch=x86-64-v3"))), 6, 32)
TC_MICRO_KERNEL(run_avx512, __attribute__((target("arch=x86-64-v4"))), 12, 64)
#endif
#undef TC_MICRO_KERNEL

std::vector<MicroKernel> find_micro_kernels() {
  std::vector<MicroKernel> found;
#if defined(__x86_64__)
  if (has_avx512()) found.push_back({12, 32, run_avx512});
  if (has_avx2()) found.push_back({6, 16, run_avx2});
#endif
  found.push_back({4, 8, run_plain});
  return found;
}

}  // namespace

bool has_avx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}
bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2");
#else
  return false;
#endif
}

std::span<const MicroKernel> micro_kernels() {
  using All = std::vector<MicroKernel>;
  static constinit FirstMade<const All, [] { return new All(find_micro_kernels()); }> found;
  return *found;
}

}  // namespace tensorcraft::host
