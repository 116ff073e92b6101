// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

// What the launchers should give, in double and obvious loops.
namespace reference {

using Values = std::vector<double>;

inline Values softmax(const Values& x, int64_t rows, int64_t cols) {
  Values y(x.size());
  for (int64_t r = 0; r < rows; ++r) {
    const double* in = &x[size_t(r * cols)];
    double top = in[0], sum = 0;
    for (int64_t i = 0; i < cols; ++i) top = std::fmax(top, in[i]);
    for (int64_t i = 0; i < cols; ++i) sum += std::exp(in[i] - top);
    for (int64_t i = 0; i < cols; ++i) y[size_t(r * cols + i)] = std::exp(in[i] - top) / sum;
  }
  return y;
}

inline Values l2_normalize(const Values& x, int64_t rows, int64_t cols) {
  Values y(x.size());
  for (int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (int64_t i = 0; i < cols; ++i) squares += x[size_t(r * cols + i)] * x[size_t(r * cols + i)];
    for (int64_t i = 0; i < cols; ++i)
      y[size_t(r * cols + i)] = x[size_t(r * cols + i)] / std::sqrt(squares);
  }
  return y;
}

inline Values rms_norm(const Values& x, const Values& weight, int64_t rows, int64_t cols,
                       double eps) {
  Values y(x.size());
  for (int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (int64_t i = 0; i < cols; ++i) squares += x[size_t(r * cols + i)] * x[size_t(r * cols + i)];
    const double scale = 1 / std::sqrt(squares / double(cols) + eps);
    for (int64_t i = 0; i < cols; ++i)
      y[size_t(r * cols + i)] = x[size_t(r * cols + i)] * scale * weight[size_t(i)];
  }
  return y;
}

inline Values layer_norm(const Values& x, const Values& weight, const Values& bias, int64_t rows,
                         int64_t cols, double eps) {
  Values y(x.size());
  for (int64_t r = 0; r < rows; ++r) {
    const double* in = &x[size_t(r * cols)];
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < cols; ++i) mean += in[i] / double(cols);
    for (int64_t i = 0; i < cols; ++i) variance += (in[i] - mean) * (in[i] - mean) / double(cols);
    for (int64_t i = 0; i < cols; ++i)
      y[size_t(r * cols + i)] =
          (in[i] - mean) / std::sqrt(variance + eps) * weight[size_t(i)] + bias[size_t(i)];
  }
  return y;
}

// B is [k, n], or [n, k] if it is transposed.
inline Values gemm(const Values& a, const Values& b, const Values& c, int64_t m, int64_t n,
                   int64_t k, double alpha, double beta, bool transposed_b) {
  Values d(size_t(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p)
        sum += a[size_t(i * k + p)] * b[size_t(transposed_b ? j * k + p : p * n + j)];
      d[size_t(i * n + j)] = alpha * sum + (beta != 0 ? beta * c[size_t(i * n + j)] : 0);
    }
  return d;
}

// One head: q and out [rows, d], k and v [keys, d].
inline Values attention(const Values& q, const Values& k, const Values& v, int64_t rows,
                        int64_t keys, int64_t d) {
  Values scores(size_t(rows * keys)), out(size_t(rows * d));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < keys; ++j)
      for (int64_t e = 0; e < d; ++e)
        scores[size_t(i * keys + j)] +=
            q[size_t(i * d + e)] * k[size_t(j * d + e)] / std::sqrt(double(d));
  scores = softmax(scores, rows, keys);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < keys; ++j)
      for (int64_t e = 0; e < d; ++e)
        out[size_t(i * d + e)] += scores[size_t(i * keys + j)] * v[size_t(j * d + e)];
  return out;
}

}  // namespace reference
