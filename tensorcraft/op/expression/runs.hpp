// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/host/element_type.hpp"
#include "tensorcraft/op/host/rows.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/op/launch/shared_address.hpp"
#include "tensorcraft/device/expression/convert.cuh"

#include <algorithm>
#include <type_traits>

// Host tensors of any strides in blocks of floats or of 64-bit integers.
namespace tensorcraft::expression {

inline constexpr int64_t kBlock = 1024;         // elements that pass through the buffers at a time
inline constexpr int64_t kGrain = 16 * kBlock;  // at least so many for a thread

// A tensor as runs of equal stride in row-major order.
class Runs {
 public:
  explicit Runs(const TensorView& t)
      : data_(static_cast<std::byte*>(op::shared_address(t))),
        dtype_(t.dtype()),
        map_(op::element_map(t)) {}
  DType dtype() const { return dtype_; }
  bool is_contiguous() const { return map_.axes == 0 || (map_.axes == 1 && map_.stride[0] == 1); }
  // As V, float or int64_t, side by side in memory?
  template <class V>
  bool holds() const {
    return dtype_ == (std::is_same_v<V, float> ? DType::float32 : DType::int64) && is_contiguous();
  }
  std::byte* address(int64_t element) const {
    return data_ + map_.offset(element) * int64_t(dtype_bytes(dtype_));
  }
  // f(address, stride, position in the block, count) for the runs of [begin, begin + n).
  template <class F>
  void for_each(int64_t begin, int64_t n, F&& f) const {
    const int last = map_.axes - 1;
    const int64_t length = last < 0 ? 1 : map_.size[last],
                  stride = last < 0 ? 0 : map_.stride[last];
    for (int64_t at = 0; at < n;) {
      const int64_t count = std::min(n - at, length - (begin + at) % length);
      f(address(begin + at), stride, at, count);
      at += count;
    }
  }

 private:
  std::byte* data_;
  DType dtype_;
  RowMap map_;
};

// Elements to the type they are computed in and back: float or int64_t.
inline void load(float* to, const std::byte* from, DType dtype, int64_t stride, int64_t n) {
  if (host::is_row_dtype(dtype)) return host::load_row(to, from, dtype, stride, n);
  host::with_element_type(dtype, [&]<class T>(T*) {
    host::for_each_pair(to, 1, reinterpret_cast<const InMemory<T>*>(from), stride, n,
                        [](float& y, const InMemory<T>& x) { y = float(T(x)); });
  });
}

inline void load(int64_t* to, const std::byte* from, DType dtype, int64_t stride, int64_t n) {
  host::with_element_type(dtype, [&]<class T>(T*) {
    host::for_each_pair(
        to, 1, reinterpret_cast<const InMemory<T>*>(from), stride, n,
        [](int64_t& y, const InMemory<T>& x) { y = convert_element<int64_t>(T(x)); });
  });
}

template <class V>
void store(std::byte* to, const V* from, DType dtype, int64_t stride, int64_t n) {
  if constexpr (std::is_same_v<V, float>)
    if (host::is_row_dtype(dtype)) return host::store_row(to, from, dtype, stride, n);
  host::with_element_type(dtype, [&]<class T>(T*) {
    host::for_each_pair(reinterpret_cast<T*>(to), stride, from, 1, n, [](T& y, const V& x) {
      if constexpr (std::is_same_v<T, bool> && std::is_integral_v<V>)
        y = x != 0;  // as vector code: not by way of a float
      else
        y = convert_element<T>(x);
    });
  });
}

// n elements as V: themselves if they are so in memory, else a copy in `buffer`.
template <class V>
const V* read(const Runs& t, int64_t begin, int64_t n, V* buffer) {
  if (t.holds<V>()) return reinterpret_cast<const V*>(t.address(begin));
  t.for_each(begin, n, [&](const std::byte* from, int64_t stride, int64_t at, int64_t count) {
    load(buffer + at, from, t.dtype(), stride, count);
  });
  return buffer;
}

template <class V>
void write(const Runs& t, int64_t begin, int64_t n, const V* values) {
  t.for_each(begin, n, [&](std::byte* to, int64_t stride, int64_t at, int64_t count) {
    store(to, values + at, t.dtype(), stride, count);
  });
}

}  // namespace tensorcraft::expression
