// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/elements.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/float8.cuh"

namespace tensorcraft::host {
namespace {

// Calls f with a null pointer of the element type of `dtype`.
template <class F>
auto with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float32:
      return f(static_cast<float*>(nullptr));
    case DType::float16:
      return f(static_cast<f16*>(nullptr));
    case DType::bfloat16:
      return f(static_cast<bf16*>(nullptr));
    case DType::float8_e4m3fn:
      return f(static_cast<e4m3*>(nullptr));
    case DType::float8_e5m2:
      return f(static_cast<e5m2*>(nullptr));
    case DType::int8:
      return f(static_cast<int8_t*>(nullptr));
    case DType::int16:
      return f(static_cast<int16_t*>(nullptr));
    case DType::int32:
      return f(static_cast<int32_t*>(nullptr));
    case DType::int64:
      return f(static_cast<int64_t*>(nullptr));
    case DType::uint8:
      return f(static_cast<uint8_t*>(nullptr));
    case DType::bool_:
      return f(static_cast<bool*>(nullptr));
  }
  fail(ErrorKind::internal, "dtype ", int(dtype), " is not known");
}

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
  return with_type(view_.dtype(), [&]<class T>(T*) {
    const T x = view_.data_as<T>()[at];
    if constexpr (kSmallFloat<T>)
      return double(float(x));
    else
      return double(x);
  });
}

void Elements::set(int64_t index, double value) const {
  const int64_t at = offset(index);
  with_type(view_.dtype(), [&]<class T>(T*) {
    // Through float first is a double rounding; half an ulp of float is far below that of T.
    if constexpr (kSmallFloat<T>)
      view_.data_as<T>()[at] = T(float(value));
    else
      view_.data_as<T>()[at] = T(value);
  });
}

}  // namespace tensorcraft::host
