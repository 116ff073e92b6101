// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/line_kernels.hpp"

#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/op/host/micro_kernel.hpp"

#include <vector>

namespace tensorcraft::host {
namespace {

constexpr int kLanes = 16;  // partial sums of a dot product, on every machine

typedef float Quad __attribute__((vector_size(16), may_alias));

[[gnu::always_inline]] inline Quad sum_of_quads(const float* lanes) {
  const Quad* const q = reinterpret_cast<const Quad*>(lanes);
  return (q[0] + q[1]) + (q[2] + q[3]);
}
[[gnu::always_inline]] inline Quad sums_of_pairs(Quad a, Quad b) {
  return __builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7);
}
// The sums of the lanes of each line.
[[gnu::always_inline]] inline Quad sums_of_lanes(const float (&lanes)[kLines][kLanes]) {
  const Quad low = sums_of_pairs(sum_of_quads(lanes[0]), sum_of_quads(lanes[1]));
  const Quad high = sums_of_pairs(sum_of_quads(lanes[2]), sum_of_quads(lanes[3]));
  return __builtin_shufflevector(low, high, 0, 1, 4, 5) +
         __builtin_shufflevector(low, high, 2, 3, 6, 7);
}

// Macros for the reason that those of micro_kernel.cpp are.
#define TC_DOT_LINES(name, attribute, kBytes)                                             \
  attribute void name(RowsAt sums, RowsAt a, int64_t count, const Lines& b, int64_t n) {  \
    typedef float Vector __attribute__((vector_size(kBytes), aligned(4), may_alias));     \
    constexpr int kWidth = kBytes / sizeof(float), kVectors = kLanes / kWidth;            \
    for (int64_t row = 0; row < count; ++row) {                                           \
      const float* const x = a.data + row * a.pitch;                                      \
      Vector parts[kLines][kVectors] = {};                                                \
      int64_t i = 0;                                                                      \
      for (; i + kLanes <= n; i += kLanes)                                                \
        _Pragma("GCC unroll 4") for (int v = 0; v < kVectors; ++v) {                      \
          const Vector y = *reinterpret_cast<const Vector*>(x + i + v * kWidth);          \
          _Pragma("GCC unroll 4") for (int l = 0; l < kLines; ++l) parts[l][v] +=         \
              y * *reinterpret_cast<const Vector*>(b[l] + i + v * kWidth);                \
        }                                                                                 \
      alignas(64) float lanes[kLines][kLanes];                                            \
      _Pragma("GCC unroll 4") for (int l = 0; l < kLines; ++l)                            \
              _Pragma("GCC unroll 4") for (int v = 0; v < kVectors; ++v) *                \
          reinterpret_cast<Vector*>(&lanes[l][v * kWidth]) = parts[l][v];                 \
      for (int lane = 0; i < n; ++i, ++lane)                                              \
        for (int l = 0; l < kLines; ++l) lanes[l][lane] += x[i] * b[l][i];                \
      *reinterpret_cast<Unaligned*>(sums.data + row * sums.pitch) = sums_of_lanes(lanes); \
    }                                                                                     \
  }

#define TC_ADD_SCALED_LINES(name, attribute, kBytes)                                       \
  attribute void name(RowsAt y, RowsAt scales, int64_t count, const Lines& x, int64_t n) { \
    typedef float Vector __attribute__((vector_size(kBytes), aligned(4), may_alias));      \
    constexpr int kWidth = kBytes / sizeof(float);                                         \
    const float *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];                            \
    for (int64_t row = 0; row < count; ++row) {                                            \
      float* const to = y.data + row * y.pitch;                                            \
      const float* const s = scales.data + row * scales.pitch;                             \
      const float s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3];                              \
      int64_t i = 0;                                                                       \
      for (; i + kWidth <= n; i += kWidth) {                                               \
        const Vector v0 = *reinterpret_cast<const Vector*>(x0 + i),                        \
                     v1 = *reinterpret_cast<const Vector*>(x1 + i),                        \
                     v2 = *reinterpret_cast<const Vector*>(x2 + i),                        \
                     v3 = *reinterpret_cast<const Vector*>(x3 + i);                        \
        *reinterpret_cast<Vector*>(to + i) += (s0 * v0 + s1 * v1) + (s2 * v2 + s3 * v3);   \
      }                                                                                    \
      for (; i < n; ++i) to[i] += (s0 * x0[i] + s1 * x1[i]) + (s2 * x2[i] + s3 * x3[i]);   \
    }                                                                                      \
  }

typedef float Unaligned __attribute__((vector_size(16), aligned(4), may_alias));

TC_DOT_LINES(dot_plain, , 16)
TC_ADD_SCALED_LINES(add_scaled_plain, , 16)
#if defined(__x86_64__)
#define TC_AVX2 __attribute__((target("arch=x86-64-v3")))
#define TC_AVX512 __attribute__((target("arch=x86-64-v4")))
TC_DOT_LINES(dot_avx2, TC_AVX2, 32)
TC_ADD_SCALED_LINES(add_scaled_avx2, TC_AVX2, 32)
TC_DOT_LINES(dot_avx512, TC_AVX512, 64)
TC_ADD_SCALED_LINES(add_scaled_avx512, TC_AVX512, 64)
#undef TC_AVX2
#undef TC_AVX512
#endif
#undef TC_DOT_LINES
#undef TC_ADD_SCALED_LINES

std::vector<LineKernels> find_line_kernels() {
  std::vector<LineKernels> found;
#if defined(__x86_64__)
  if (has_avx512()) found.push_back({dot_avx512, add_scaled_avx512});
  if (has_avx2()) found.push_back({dot_avx2, add_scaled_avx2});
#endif
  found.push_back({dot_plain, add_scaled_plain});
  return found;
}

}  // namespace

std::span<const LineKernels> all_line_kernels() {
  using All = std::vector<LineKernels>;
  static constinit FirstMade<const All, [] { return new All(find_line_kernels()); }> found;
  return *found;
}

}  // namespace tensorcraft::host
