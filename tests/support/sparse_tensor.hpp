// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/op/host/elements.hpp"

#include <sys/mman.h>

#include <cstring>
#include <vector>

// Tensors over more addresses than there is memory: pages come with the first touch.
namespace tensorcraft::test {

// f(index, offset in elements) for every element, row-major.
template <class F>
void for_each_element(const TensorView& t, F&& f) {
  for (int64_t i = 0; i < t.size(); ++i) {
    int64_t rest = i, offset = 0;
    for (int a = t.rank() - 1; a >= 0; --a) {
      offset += rest % t.shape(a) * t.stride(a);
      rest /= t.shape(a);
    }
    f(i, offset);
  }
}

// Every byte of every element becomes 0xff, which is NaN in a float. Host memory.
inline void poison(const TensorView& t) {
  const auto bytes = int64_t(dtype_bytes(t.dtype()));
  for_each_element(t, [&](int64_t, int64_t offset) {
    std::memset(t.data_as<std::byte>() + offset * bytes, 0xff, size_t(bytes));
  });
}

// Row-major, of host memory.
inline std::vector<float> values(const TensorView& t) {
  const host::Elements all(t.at(t.data(), Device::cpu()));
  std::vector<float> result(static_cast<size_t>(t.size()));
  for (int64_t i = 0; i < t.size(); ++i) result[size_t(i)] = float(all[i]);
  return result;
}

// Memory for a tensor of host memory with one stride of its own. What an offset cut to 32 bits
// reaches, before or after it, is mapped too, and zero.
class SparseTensor {
 public:
  SparseTensor(const TensorView& from, int axis, int64_t stride) : from_(from), view_(from) {
    Dims strides = from.strides();
    strides[axis] = stride;
    int64_t last = 0;
    for (int i = 0; i < from.rank(); ++i) last += (from.shape(i) - 1) * strides[i];
    bytes_ = 2 * kMargin + size_t(last + 1) * dtype_bytes(from.dtype());
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (is_there())
      view_ = TensorView(static_cast<std::byte*>(memory_) + kMargin, from.dtype(), from.shape(),
                         strides, from.device());
  }
  ~SparseTensor() {
    if (is_there()) munmap(memory_, bytes_);
  }
  SparseTensor(const SparseTensor&) = delete;
  SparseTensor& operator=(const SparseTensor&) = delete;
  bool is_there() const { return memory_ != MAP_FAILED; }
  const TensorView& view() const { return view_; }
  // Copies the values.
  void fill() {
    if (is_filled_) return;
    is_filled_ = true;
    const size_t bytes = dtype_bytes(view_.dtype());
    std::vector<const std::byte*> sources;
    for_each_element(from_, [&](int64_t, int64_t offset) {
      sources.push_back(from_.data_as<std::byte>() + offset * int64_t(bytes));
    });
    for_each_element(view_, [&](int64_t i, int64_t offset) {
      std::memcpy(view_.data_as<std::byte>() + offset * int64_t(bytes), sources[size_t(i)], bytes);
    });
  }

 private:
  static constexpr size_t kMargin = size_t(8) << 32;
  TensorView from_, view_;
  size_t bytes_ = 0;
  bool is_filled_ = false;
  void* memory_ = MAP_FAILED;
};

}  // namespace tensorcraft::test
