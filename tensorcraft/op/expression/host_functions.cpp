// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/expression/host_functions.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/element_type.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/host/simd.hpp"
#include "tensorcraft/device/expression/functors.cuh"

#include <cmath>
#include <optional>

namespace tensorcraft::expression {
namespace {

template <class T, class F>
inline __attribute__((always_inline)) void map(T* y, const T* a, const T* b, int64_t n, F f) {
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
TC_HOST_CLONES void row_sqrt(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return std::sqrt(v); });
}
TC_HOST_CLONES void row_rsqrt(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return 1.0f / std::sqrt(v); });
}
TC_HOST_CLONES void row_exp(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return host::exp(v); });
}
TC_HOST_CLONES void row_leaky_relu(float* y, const float* x, float alpha, int64_t n) {
  map(y, x, n, [=](float v) { return host::select(v > 0.0f, v, alpha * v); });
}
TC_HOST_CLONES void row_elu(float* y, const float* x, float alpha, int64_t n) {
  map(y, x, n, [=](float v) {
    return host::select(v > 0.0f, v,
                        alpha * host::expm1_below_zero(host::select(v > 0.0f, 0.0f, v)));
  });
}
TC_HOST_CLONES void row_swish(float* y, const float* x, float beta, int64_t n) {
  map(y, x, n, [=](float v) { return v / (1.0f + host::exp(-(double(beta) * v))); });
}

TC_HOST_CLONES void row_floor(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return std::floor(v); });
}
TC_HOST_CLONES void row_ceil(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return std::ceil(v); });
}
TC_HOST_CLONES void row_trunc(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return std::trunc(v); });
}

// The functor that is wanted on each element, if it takes one of `taken`; else false.
template <Operands... taken, class T>
bool map_one_of(Operation wanted, T* y, const T* a, const T* b, int64_t n) {
#define TC_MAP(name, inputs, operands)                                          \
  if constexpr (((Operands::operands == taken) || ...))                         \
    if (wanted == Operation::name) {                                            \
      const auto f = [](T u, T v) { return Functor<Operation::name>()(u, v); }; \
      return map(y, a, inputs > 1 ? b : a, n, f), true;                         \
    }
  TC_OPERATIONS(TC_MAP)
#undef TC_MAP
  return false;
}

// Wraps; the integer part if the exponent is negative.
int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 || (base == -1 && exponent % 2 == 0) ? 1 : base == -1 ? -1 : 0;
  uint64_t power = 1;
  for (uint64_t factor = uint64_t(base); exponent > 0; exponent >>= 1, factor *= factor)
    if (exponent & 1) power *= factor;
  return int64_t(power);
}

// By the definition, with a floor of the exact quotient.
double floor_remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}
double floor_quotient(double a, double b) {
  if (std::isinf(b) && std::isfinite(a)) return a == 0 || (a < 0) == (b < 0) ? a / b : -1;
  if (b == 0 || !std::isfinite(a)) return a / b;
  const double quotient = std::round((a - floor_remainder(a, b)) / b);
  return quotient == 0 ? std::copysign(0.0, a / b) : quotient;
}

[[noreturn]] void unknown(Operation operation) {
  fail(ErrorKind::internal, "elementwise: operation ", int(operation), " computes nothing");
}

// False if it is none of these.
bool activate(Operation operation, float* y, const float* a, float alpha, int64_t n) {
  switch (operation) {
    case Operation::tanh:
      return host::row_tanh(y, a, n), true;
    case Operation::sigmoid:
      return host::row_sigmoid(y, a, n), true;
    case Operation::relu:
      return host::row_activate(y, a, Activation::relu, n), true;
    case Operation::leaky_relu:
      return row_leaky_relu(y, a, alpha, n), true;
    case Operation::elu:
      return row_elu(y, a, alpha, n), true;
    case Operation::silu:
      return host::row_activate(y, a, Activation::silu, n), true;
    case Operation::swish:
      return row_swish(y, a, alpha, n), true;
    case Operation::gelu:
      return host::row_activate(y, a, Activation::gelu, n), true;
    case Operation::gelu_tanh:
      return host::row_activate(y, a, Activation::gelu_tanh, n), true;
    default:
      return false;
  }
}

// None if it is none of these.
std::optional<double> activation(Operation operation, double a, double alpha) {
  switch (operation) {
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
      return a / (1 + std::exp(-1.5957691216057308 * (a + 0.044715 * a * a * a)));
    default:
      return {};
  }
}
std::optional<double> math_function(Operation operation, double a) {
  switch (operation) {
    case Operation::round:
      return std::nearbyint(a);
    case Operation::log:
      return std::log(a);
    case Operation::sqrt:
      return std::sqrt(a);
    case Operation::rsqrt:
      return 1 / std::sqrt(a);
    case Operation::exp:
      return std::exp(a);
    case Operation::floor:
      return std::floor(a);
    case Operation::ceil:
      return std::ceil(a);
    case Operation::trunc:
      return std::trunc(a);
#define TC_C_FUNCTION(name, ...) \
  case Operation::name:          \
    return std::name(a);
      TC_C_FUNCTIONS(TC_C_FUNCTION)
#undef TC_C_FUNCTION
    default:
      return {};
  }
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
    case Operation::sqrt:
      return row_sqrt(y, a, n);
    case Operation::rsqrt:
      return row_rsqrt(y, a, n);
    case Operation::exp:
      return row_exp(y, a, n);
    case Operation::floor:
      return row_floor(y, a, n);
    case Operation::ceil:
      return row_ceil(y, a, n);
    case Operation::trunc:
      return row_trunc(y, a, n);
    default:
      break;
  }
  if (!activate(operation, y, a, alpha, n) &&
      !map_one_of<Operands::floats, Operands::numbers>(operation, y, a, b, n))
    unknown(operation);
}

void compute(Operation operation, int64_t* y, const int64_t* a, const int64_t* b, int64_t n) {
  if (operation == Operation::pow) return map(y, a, b, n, integer_power);
  if (!map_one_of<Operands::integers, Operands::numbers>(operation, y, a, b, n)) unknown(operation);
}

int64_t compute(Operation operation, int64_t a, int64_t b) {
  int64_t y;
  compute(operation, &y, &a, &b, 1);
  return y;
}

float next_value(DType dtype, float a, float b) {
  return host::with_element_type(dtype, [&]<class T>(T*) -> float {
    if constexpr (FloatingPoint<T> && sizeof(T) > 1) return float(next_after(T(a), T(b)));
    fail(ErrorKind::internal, "elementwise: no next number of ", dtype);
  });
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
    case Operation::pow:
      return std::pow(a, b);
    case Operation::sign:
      return a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a;
    case Operation::floor_divide:
      return floor_quotient(a, b);
    case Operation::remainder:
      return floor_remainder(a, b);
    case Operation::atan2:
      return std::atan2(a, b);
    case Operation::hypot:
      return std::hypot(a, b);
    case Operation::logaddexp:
      return a == b ? a + std::log(2.0) : std::fmax(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
    case Operation::copysign:
      return std::copysign(a, b);
    default:
      break;
  }
  if (const auto y = activation(operation, a, alpha)) return *y;
  if (const auto y = math_function(operation, a)) return *y;
  unknown(operation);
}

}  // namespace tensorcraft::expression
