// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/elements.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/interrupt.hpp"
#include "tensorcraft/op/host/element_bits.hpp"
#include "tensorcraft/op/host/element_type.hpp"
#include "tensorcraft/op/launch/shared_address.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <type_traits>

namespace tensorcraft::host {
namespace {

// Loops over elements are long if a reference is asked for much; each step of them comes here.
void count_step() {
  constexpr unsigned kSteps = 1 << 16;  // about a millisecond
  thread_local constinit unsigned steps = 0;
  if (++steps % kSteps == 0) check_interrupt();
}

}  // namespace

int64_t Elements::offset(int64_t index) const {
  count_step();
  if (!has_gaps_) return index;
  int64_t at = 0;
  for (int i = view_.rank() - 1; i >= 0; --i) {
    at += index % view_.shape(i) * view_.stride(i);
    index /= view_.shape(i);
  }
  return at;
}

double Elements::operator[](int64_t index) const {
  const int64_t at = offset(index);
  // The memory may have been made elsewhere, and may hold more than 0 and 1.
  if (view_.dtype() == DType::bool_) return view_.data_as<const uint8_t>()[at] != 0;
  return with_element_type(view_.dtype(), [&]<class T>(T*) {
    const T x = view_.data_as<const T>()[at];
    if constexpr (is_half_v<T>)
      return double(std::copysign(float(x), expression::sign_source(x)));
    else if constexpr (std::is_class_v<T>)
      return double(float(x));
    else
      return double(x);
  });
}

void Elements::set(int64_t index, double value) const {
  const int64_t at = offset(index);
  with_element_type(view_.dtype(),
                    [&]<class T>(T*) { view_.data_as<T>()[at] = element_of<T>(value); });
}

std::vector<double> Elements::all() const {
  std::vector<double> values(size_t(view_.size()));
  for (int64_t i = 0; i < view_.size(); ++i) values[size_t(i)] = (*this)[i];
  return values;
}

int64_t Elements::integer(int64_t index) const {
  const std::byte* at = address(index);
  if (view_.dtype() == DType::bool_) return *at != std::byte(0);
  return with_element_type(view_.dtype(), [&]<class T>(T*) -> int64_t {
    if constexpr (std::is_integral_v<T>) return int64_t(*reinterpret_cast<const T*>(at));
    fail(ErrorKind::internal, "elements of ", view_.dtype(), " are no integers");
  });
}

void Elements::set_integer(int64_t index, int64_t value) const {
  std::byte* at = address(index);
  with_element_type(view_.dtype(), [&]<class T>(T*) {
    if constexpr (std::is_same_v<T, bool>)
      *reinterpret_cast<T*>(at) = value != 0;
    else if constexpr (std::is_integral_v<T>)
      *reinterpret_cast<T*>(at) = T(value);
  });
}

std::byte* Elements::address(int64_t index) const {
  return static_cast<std::byte*>(op::shared_address(view_)) +
         offset(index) * int64_t(dtype_bytes(view_.dtype()));
}

double activate(Activation activation, double x) {
  constexpr double sqrt_half = std::numbers::sqrt2 / 2;
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return std::isnan(x) ? x : std::max(x, 0.0);
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x * sqrt_half);
    case Activation::gelu_tanh:
      return x /
             (1 + std::exp(-4 * sqrt_half * std::numbers::inv_sqrtpi * (x + 0.044715 * x * x * x)));
    case Activation::silu:
      return x / (1 + std::exp(-x));
  }
  return x;
}

}  // namespace tensorcraft::host
