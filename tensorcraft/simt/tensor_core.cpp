// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/tensor_core.hpp"

#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/device/float8.cuh"

#include <array>
#include <memory>

namespace tensorcraft::simt {
namespace {

template <size_t kCount>
using Table = std::array<float, kCount>;

template <class T, size_t kCount>
Table<kCount>* make_table() {
  auto table = std::make_unique<Table<kCount>>();
  for (size_t i = 0; i < kCount; ++i) {
    using Bits = decltype(T::bits);
    (*table)[i] = float(T::from_bits(Bits(i)));
  }
  return table.release();
}

}  // namespace

double element_value(WgmmaType type, uint32_t bits) {
  static constinit FirstMade<const Table<65536>, make_table<f16, 65536>> f16_values;
  static constinit FirstMade<const Table<256>, make_table<e4m3, 256>> e4m3_values;
  static constinit FirstMade<const Table<256>, make_table<e5m2, 256>> e5m2_values;
  switch (type) {
    case WgmmaType::f16:
      return (*f16_values)[bits & 0xffffu];
    case WgmmaType::bf16:
      return bit_cast<float>(bits << 16);
    case WgmmaType::tf32:
      return bit_cast<float>(bits & 0xffffe000u);
    case WgmmaType::e4m3:
      return (*e4m3_values)[bits & 0xffu];
    case WgmmaType::e5m2:
      return (*e5m2_values)[bits & 0xffu];
    case WgmmaType::s8:
      return int8_t(bits);
  }
  return 0;
}

void multiply_add(const double* a, const double* b, double* sums, int m, int n, int k) {
  for (int i = 0; i < m; ++i)
    for (int l = 0; l < k; ++l) {
      const double factor = a[i * k + l];
      double* const row = sums + i * n;
      const double* const b_row = b + l * n;
      for (int j = 0; j < n; ++j) row[j] += factor * b_row[j];
    }
}

float round_sum(double sum) { return sum != sum ? bit_cast<float>(0x7fffffffu) : float(sum); }

}  // namespace tensorcraft::simt
