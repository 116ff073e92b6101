// SPDX-License-Identifier: Apache-2.0
// A matrix product as everyone writes it first: one thread, one element of D.
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/simt/launch.hpp"

#include <iostream>
#include <vector>

using namespace tensorcraft;  // CUDA's words are in it: threadIdx, blockIdx

struct Params {
  int m, n, k;
  const float *a, *b;  // m x k and k x n, rows one after the other
  float* d;
};

TC_DEVICE void naive(const Params& p) {
  const int row = blockIdx.y * 8 + threadIdx.y;
  const int col = blockIdx.x * 8 + threadIdx.x;
  if (row >= p.m || col >= p.n) return;
  float sum = 0;
  for (int k = 0; k < p.k; ++k) sum += p.a[row * p.k + k] * p.b[k * p.n + col];
  p.d[row * p.n + col] = sum;
}

void call(const void* params) { naive(*static_cast<const Params*>(params)); }

int main() {
  const int m = 17, n = 9, k = 33;
  std::vector<float> a(m * k), b(k * n), d(m * n);
  for (int i = 0; i < m * k; ++i) a[i] = float(i % 7 - 3);
  for (int i = 0; i < k * n; ++i) b[i] = float(i % 5 - 2);
  const Params params{m, n, k, a.data(), b.data(), d.data()};
  simt::launch({.name = "naive", .grid = {(n + 7) / 8, (m + 7) / 8}, .block = {8, 8}}, call,
               &params);
  int wrong = 0;
  for (int i = 0; i < m * n; ++i) {
    double sum = 0;
    for (int j = 0; j < k; ++j) sum += double(a[i / n * k + j]) * b[j * n + i % n];
    wrong += d[i] != sum;  // small integers: the sums are exact
  }
  std::cout << wrong << " of " << m * n << " are wrong\n";
}
