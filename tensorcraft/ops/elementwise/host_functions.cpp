// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/elementwise/host_functions.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/host/simd.hpp"

#include <cmath>
#include <cstring>

namespace tensorcraft::kernel::elementwise {
namespace {

template <class F>
inline __attribute__((always_inline)) void map(float* y, const float* a, const float* b, int64_t n,
                                               F f) {
  for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
}
template <class F>
inline __attribute__((always_inline)) void map(float* y, const float* x, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

TC_HOST_CLONES void row_add(float* y, const float* a, const float* b, int64_t n) {
  map(y, a, b, n, [](float u, float v) { return u + v; });
}
TC_HOST_CLONES void row_subtract(float* y, const float* a, const float* b, int64_t n) {
  map(y, a, b, n, [](float u, float v) { return u - v; });
}
TC_HOST_CLONES void row_multiply(float* y, const float* a, const float* b, int64_t n) {
  map(y, a, b, n, [](float u, float v) { return u * v; });
}
TC_HOST_CLONES void row_divide(float* y, const float* a, const float* b, int64_t n) {
  map(y, a, b, n, [](float u, float v) { return u / v; });
}
TC_HOST_CLONES void row_maximum(float* y, const float* a, const float* b, int64_t n) {
  map(y, a, b, n, [](float u, float v) { return host::max_nan(u, v); });
}
TC_HOST_CLONES void row_minimum(float* y, const float* a, const float* b, int64_t n) {
  map(y, a, b, n, [](float u, float v) { return host::min_nan(u, v); });
}
TC_HOST_CLONES void row_negative(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return -v; });
}
TC_HOST_CLONES void row_abs(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return std::fabs(v); });
}
TC_HOST_CLONES void row_round(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return std::rint(v); });
}
void row_log(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return std::log(v); });
}
TC_HOST_CLONES void row_sqrt(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return std::sqrt(v); });
}
TC_HOST_CLONES void row_rsqrt(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return 1.0f / std::sqrt(v); });
}
void row_pow(float* y, const float* a, const float* b, int64_t n) {
  map(y, a, b, n, [](float u, float v) { return v == 2.0f ? u * u : std::pow(u, v); });
}
TC_HOST_CLONES void row_exp(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return host::exp(v); });
}
TC_HOST_CLONES void row_leaky_relu(float* y, const float* x, float alpha, int64_t n) {
  map(y, x, n, [=](float v) { return host::select(v > 0.0f, v, alpha * v); });
}
TC_HOST_CLONES void row_elu(float* y, const float* x, float alpha, int64_t n) {
  map(y, x, n, [=](float v) { return host::select(v > 0.0f, v, alpha * (host::exp(v) - 1.0f)); });
}
TC_HOST_CLONES void row_swish(float* y, const float* x, float beta, int64_t n) {
  map(y, x, n, [=](float v) { return v / (1.0f + host::exp(-(beta * v))); });
}

// Wraps; the integer part if the exponent is negative.
int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 || (base == -1 && exponent % 2 == 0) ? 1 : base == -1 ? -1 : 0;
  uint64_t power = 1;
  for (uint64_t factor = uint64_t(base); exponent > 0; exponent >>= 1, factor *= factor)
    if (exponent & 1) power *= factor;
  return int64_t(power);
}

[[noreturn]] void unknown(Operation operation) {
  fail(ErrorKind::internal, "elementwise: operation ", int(operation), " computes nothing");
}

}  // namespace

void compute(Operation operation, float* y, const float* a, const float* b, float alpha,
             int64_t n) {
  switch (operation) {
    case Operation::add:
      return row_add(y, a, b, n);
    case Operation::subtract:
      return row_subtract(y, a, b, n);
    case Operation::multiply:
      return row_multiply(y, a, b, n);
    case Operation::divide:
      return row_divide(y, a, b, n);
    case Operation::maximum:
      return row_maximum(y, a, b, n);
    case Operation::minimum:
      return row_minimum(y, a, b, n);
    case Operation::negative:
      return row_negative(y, a, n);
    case Operation::abs:
      return row_abs(y, a, n);
    case Operation::round:
      return row_round(y, a, n);
    case Operation::log:
      return row_log(y, a, n);
    case Operation::sqrt:
      return row_sqrt(y, a, n);
    case Operation::rsqrt:
      return row_rsqrt(y, a, n);
    case Operation::pow:
      return row_pow(y, a, b, n);
    case Operation::exp:
      return row_exp(y, a, n);
    case Operation::tanh:
      return host::row_tanh(y, a, n);
    case Operation::sigmoid:
      return host::row_sigmoid(y, a, n);
    case Operation::relu:
      return host::row_activate(y, a, Activation::relu, n);
    case Operation::leaky_relu:
      return row_leaky_relu(y, a, alpha, n);
    case Operation::elu:
      return row_elu(y, a, alpha, n);
    case Operation::silu:
      return host::row_activate(y, a, Activation::silu, n);
    case Operation::swish:
      return row_swish(y, a, alpha, n);
    case Operation::gelu:
      return host::row_activate(y, a, Activation::gelu, n);
    case Operation::gelu_tanh:
      return host::row_activate(y, a, Activation::gelu_tanh, n);
    default:
      unknown(operation);
  }
}

void compute(Operation operation, int64_t* y, const int64_t* a, const int64_t* b, int64_t n) {
  const auto each = [=](auto f) {
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
  };
  switch (operation) {
    case Operation::add:
      return each([](int64_t u, int64_t v) { return int64_t(uint64_t(u) + uint64_t(v)); });
    case Operation::subtract:
      return each([](int64_t u, int64_t v) { return int64_t(uint64_t(u) - uint64_t(v)); });
    case Operation::multiply:
      return each([](int64_t u, int64_t v) { return int64_t(uint64_t(u) * uint64_t(v)); });
    case Operation::maximum:
      return each([](int64_t u, int64_t v) { return u > v ? u : v; });
    case Operation::minimum:
      return each([](int64_t u, int64_t v) { return u < v ? u : v; });
    case Operation::negative:
      return each([](int64_t u, int64_t) { return int64_t(uint64_t(0) - uint64_t(u)); });
    case Operation::abs:
      return each(
          [](int64_t u, int64_t) { return u < 0 ? int64_t(uint64_t(0) - uint64_t(u)) : u; });
    case Operation::pow:
      return each([](int64_t u, int64_t v) { return integer_power(u, v); });
    default:
      unknown(operation);
  }
}

int64_t compute(Operation operation, int64_t a, int64_t b) {
  int64_t y;
  compute(operation, &y, &a, &b, 1);
  return y;
}

double compute(Operation operation, double a, double b, double alpha) {
  switch (operation) {
    case Operation::add:
      return a + b;
    case Operation::subtract:
      return a - b;
    case Operation::multiply:
      return a * b;
    case Operation::divide:
      return a / b;
    case Operation::maximum:
      return std::isnan(a) || a > b ? a : b;
    case Operation::minimum:
      return std::isnan(a) || a < b ? a : b;
    case Operation::negative:
      return -a;
    case Operation::abs:
      return std::fabs(a);
    case Operation::round:
      return std::nearbyint(a);
    case Operation::log:
      return std::log(a);
    case Operation::sqrt:
      return std::sqrt(a);
    case Operation::rsqrt:
      return 1 / std::sqrt(a);
    case Operation::pow:
      return std::pow(a, b);
    case Operation::exp:
      return std::exp(a);
    case Operation::tanh:
      return std::tanh(a);
    case Operation::sigmoid:
      return 1 / (1 + std::exp(-a));
    case Operation::relu:
      return a < 0 ? 0 : a;
    case Operation::leaky_relu:
      return a > 0 ? a : alpha * a;
    case Operation::elu:
      return a > 0 ? a : alpha * std::expm1(a);
    case Operation::silu:
      return a / (1 + std::exp(-a));
    case Operation::swish:
      return a / (1 + std::exp(-alpha * a));
    case Operation::gelu:
      return a * (0.5 * std::erfc(-a * std::sqrt(0.5)));
    case Operation::gelu_tanh:
      return 0.5 * a * (1 + std::tanh(0.7978845608028654 * (a + 0.044715 * a * a * a)));
    default:
      unknown(operation);
  }
}

}  // namespace tensorcraft::kernel::elementwise
