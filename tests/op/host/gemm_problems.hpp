// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/host/gemm.hpp"
#include "tensorcraft/op/host/rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tensorcraft::host {

// The memory of one operand, each element known as a float and as its dtype.
struct Storage {
  Storage(int64_t size, DType type, uint32_t seed) : dtype(type), bytes(size * 4) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    values.resize(size);
    for (float& v : values) v = uniform(random);
    store_row(bytes.data(), values.data(), dtype, 1, size);
    load_row(values.data(), bytes.data(), dtype, 1, size);
  }
  void fill(float value) {
    std::fill(values.begin(), values.end(), value);
    store_row(bytes.data(), values.data(), dtype, 1, int64_t(values.size()));
  }
  std::vector<float> read() const {
    std::vector<float> now(values.size());
    load_row(now.data(), bytes.data(), dtype, 1, int64_t(now.size()));
    return now;
  }
  DType dtype;
  std::vector<std::byte> bytes;
  std::vector<float> values;
};

struct GemmCase {
  int64_t m, n, k, batch = 1;
  bool transpose_a = false, transpose_b = false;
  DType in = DType::float32, out = DType::float32;
  float alpha = 1, beta = 0;
  bool bias = false;
  Activation activation = Activation::none;
  int64_t gap = 0;  // unused elements at the end of each line
};

// Operands of a case. `problem` points into the storages; C is D.
struct GemmData {
  explicit GemmData(const GemmCase& c)
      : a(c.batch * lines_a(c) * (length_a(c) + c.gap) + 1, c.in, 1),
        b(c.batch * lines_b(c) * (length_b(c) + c.gap) + 1, c.in, 2),
        d(c.batch * c.m * (c.n + c.gap) + 1, c.out, 3),
        bias(c.n, DType::float32, 4) {
    const auto strided = [&](Storage& s, int64_t lines, int64_t length, bool transposed) {
      const int64_t line = length + c.gap;
      return Matrix{s.bytes.data(), s.dtype, transposed ? 1 : line, transposed ? line : 1,
                    lines * line};
    };
    problem = {.m = c.m,
               .n = c.n,
               .k = c.k,
               .batch = c.batch,
               .a = strided(a, lines_a(c), length_a(c), c.transpose_a),
               .b = strided(b, lines_b(c), length_b(c), c.transpose_b),
               .d = strided(d, c.m, c.n, false),
               .alpha = c.alpha,
               .beta = c.beta,
               .activation = c.activation};
    if (c.beta != 0)
      problem.c = problem.d;
    else
      d.fill(std::numeric_limits<float>::quiet_NaN());
    if (c.bias) problem.bias = {bias.bytes.data(), DType::float32, 0, 1, 0};
  }
  static int64_t lines_a(const GemmCase& c) { return c.transpose_a ? c.k : c.m; }
  static int64_t length_a(const GemmCase& c) { return c.transpose_a ? c.m : c.k; }
  static int64_t lines_b(const GemmCase& c) { return c.transpose_b ? c.n : c.k; }
  static int64_t length_b(const GemmCase& c) { return c.transpose_b ? c.k : c.n; }

  double expected(int64_t z, int64_t i, int64_t j) const {
    const GemmProblem& g = problem;
    double sum = 0;
    for (int64_t p = 0; p < g.k; ++p)
      sum += double(a.values[z * g.a.batch + i * g.a.row + p * g.a.column]) *
             double(b.values[z * g.b.batch + p * g.b.row + j * g.b.column]);
    double x = double(g.alpha) * sum;
    if (g.beta != 0) x += double(g.beta) * d.values[z * g.d.batch + i * g.d.row + j];
    if (g.bias.data) x += bias.values[j];
    if (g.activation == Activation::relu) return std::max(x, 0.0);
    if (g.activation == Activation::gelu) return 0.5 * x * std::erfc(-x * std::sqrt(0.5));
    if (g.activation == Activation::gelu_tanh)
      return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    if (g.activation == Activation::silu) return x / (1 + std::exp(-x));
    return x;
  }

  // Every element of D against the sum in double, and the gaps between its lines untouched.
  void check() const {
    const GemmProblem& g = problem;
    const std::vector<float> now = d.read();
    const double unit = g.d.dtype == DType::float32   ? 1e-6
                        : g.d.dtype == DType::float16 ? 1e-3
                                                      : 8e-3;
    for (int64_t z = 0; z < g.batch; ++z)
      for (int64_t i = 0; i < g.m; ++i) {
        const int64_t line = z * g.d.batch + i * g.d.row;
        for (int64_t j = 0; j < g.n; ++j) {
          const double e = expected(z, i, j);
          const double bound = unit * std::abs(e) + 1e-6 * (1 + std::sqrt(double(g.k)));
          ASSERT_LE(std::abs(double(now[line + j]) - e), bound) << z << " " << i << " " << j;
        }
        for (int64_t j = line + g.n; j < line + g.d.row; ++j)
          ASSERT_TRUE(std::isnan(d.values[j]) ? std::isnan(now[j]) : now[j] == d.values[j]);
      }
  }

  Storage a, b, d, bias;
  GemmProblem problem;
};

}  // namespace tensorcraft::host
