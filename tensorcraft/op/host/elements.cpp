// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/elements.hpp"

#include "tensorcraft/op/host/element_type.hpp"

#include <type_traits>

namespace tensorcraft::host {
namespace {

template <class T>
constexpr bool kSmallFloat = std::is_class_v<T>;

}  // namespace

int64_t Elements::offset(int64_t index) const {
  int64_t at = 0;
  for (int i = view_.rank() - 1; i >= 0; --i) {
    at += index % view_.shape(i) * view_.stride(i);
    index /= view_.shape(i);
  }
  return at;
}

double Elements::operator[](int64_t index) const {
  const int64_t at = offset(index);
  return with_element_type(view_.dtype(), [&]<class T>(T*) {
    const T x = view_.data_as<T>()[at];
    if constexpr (kSmallFloat<T>)
      return double(float(x));
    else
      return double(x);
  });
}

void Elements::set(int64_t index, double value) const {
  const int64_t at = offset(index);
  with_element_type(view_.dtype(), [&]<class T>(T*) {
    // Through float first is a double rounding; half an ulp of float is far below that of T.
    if constexpr (kSmallFloat<T>)
      view_.data_as<T>()[at] = T(float(value));
    else
      view_.data_as<T>()[at] = T(value);
  });
}

}  // namespace tensorcraft::host
