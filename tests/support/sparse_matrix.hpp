// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/support/tensors.hpp"

#include <algorithm>
#include <random>
#include <vector>

namespace tensorcraft::test {

// A matrix of compressed rows on the host.
struct SparseCase {
  int64_t rows = 0, cols = 0;
  std::vector<float> data;
  std::vector<int32_t> indices, indptr{0};

  int64_t stored() const { return int64_t(data.size()); }
  Tensor data_on(Device d) const { return Tensor::from(data, {stored()}, d); }
  Tensor indices_on(Device d) const { return Tensor::from(indices, {stored()}, d); }
  Tensor indptr_on(Device d) const { return Tensor::from(indptr, {rows + 1}, d); }
  // Row-major, with zeros.
  std::vector<float> dense() const {
    std::vector<float> all(size_t(rows * cols), 0.0f);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t k = indptr[size_t(row)]; k < indptr[size_t(row) + 1]; ++k)
        all[size_t(row * cols + indices[size_t(k)])] = data[size_t(k)];
    return all;
  }
};

// Sizes and lengths of rows are random: alike, skewed, with empty ones; indices ascend.
inline SparseCase random_matrix(std::mt19937& random) {
  const auto below = [&](int n) { return int(random() % unsigned(n)); };
  SparseCase a;
  a.rows = below(4) ? below(300) : below(5);
  a.cols = 1 + below(below(3) ? 200 : 3000);
  const int kind = below(3), mean = 1 + below(40);
  std::vector<char> used(static_cast<size_t>(a.cols));
  for (int64_t row = 0; row < a.rows; ++row) {
    int length = kind == 0 ? mean : kind == 1 ? below(mean) : below(20) ? below(3) : below(3000);
    length = int(std::min<int64_t>(length, a.cols));
    std::fill(used.begin(), used.end(), char(0));
    for (int i = 0; i < length; ++i) used[size_t(below(int(a.cols)))] = 1;
    for (int64_t c = 0; c < a.cols; ++c)
      if (used[size_t(c)]) {
        a.indices.push_back(int32_t(c));
        a.data.push_back(std::normal_distribution<float>()(random));
      }
    a.indptr.push_back(int32_t(a.indices.size()));
  }
  return a;
}

}  // namespace tensorcraft::test
