// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/rows.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/simd.hpp"
#include "tensorcraft/op/launch/shared_address.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

namespace tensorcraft::host {
namespace {

// Independent sums of a reduction: two vectors of 16 floats hide the latency of an addition.
constexpr int kLanes = 32;
// Floats of a line of memory.
constexpr int64_t kLine = 16;

inline float sum_lanes(float (&lanes)[kLanes]) {
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  return lanes[0];
}

// The sum of term(i) for i in [begin, end).
template <class Term>
inline __attribute__((always_inline)) float part_sum(int64_t begin, int64_t end, Term term) {
  float lanes[kLanes] = {};
  int64_t i = begin;
  for (; i + kLanes <= end; i += kLanes)
    for (int l = 0; l < kLanes; ++l) lanes[l] += term(i + l);
  for (int l = 0; i + l < end; ++l) lanes[l] += term(i + l);
  return sum_lanes(lanes);
}

// The sum of term(i) for i in [0, n).
template <class Term>
inline __attribute__((always_inline)) float sum_of(int64_t n, Term term) {
  constexpr int64_t kPart = kFloatChain * kLanes;
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += kPart)
    sum += double(part_sum(begin, std::min(begin + kPart, n), term));
  return float(sum);
}

template <class F>
inline __attribute__((always_inline)) void map(float* y, const float* x, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

TC_HOST_CLONES void halves_to_floats(float* to, const uint16_t* from, int64_t stride, int64_t n) {
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) to[i] = half_to_float(from[i]);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = half_to_float(from[i * stride]);
}

TC_HOST_CLONES void bfloat16s_to_floats(float* to, const uint16_t* from, int64_t stride,
                                        int64_t n) {
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) to[i] = bfloat16_to_float(from[i]);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = bfloat16_to_float(from[i * stride]);
}

TC_HOST_CLONES void int8s_to_floats(float* to, const int8_t* from, int64_t stride, int64_t n) {
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) to[i] = float(from[i]);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = float(from[i * stride]);
}

TC_HOST_CLONES void e4m3s_to_floats(float* to, const uint8_t* from, int64_t stride, int64_t n) {
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) to[i] = e4m3_to_float(from[i]);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = e4m3_to_float(from[i * stride]);
}

// The upper byte of a half.
TC_HOST_CLONES void e5m2s_to_floats(float* to, const uint8_t* from, int64_t stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = half_to_float(uint16_t(from[i * stride] << 8));
}

TC_HOST_CLONES void floats_to_halves(uint16_t* to, const float* from, int64_t stride, int64_t n) {
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) to[i] = float_to_half(from[i]);
  else
    for (int64_t i = 0; i < n; ++i) to[i * stride] = float_to_half(from[i]);
}

TC_HOST_CLONES void floats_to_bfloat16s(uint16_t* to, const float* from, int64_t stride,
                                        int64_t n) {
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) to[i] = float_to_bfloat16(from[i]);
  else
    for (int64_t i = 0; i < n; ++i) to[i * stride] = float_to_bfloat16(from[i]);
}

[[noreturn]] void fail_dtype(const char* function, DType dtype,
                             const char* expected = "float32, float16 or bfloat16") {
  fail(ErrorKind::type, function, ": dtype ", dtype, " is not supported; expected ", expected);
}

TC_HOST_CLONES void row_relu(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return relu(v); });
}
TC_HOST_CLONES void row_gelu(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return gelu(v); });
}
TC_HOST_CLONES void row_gelu_tanh(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return gelu_tanh(v); });
}
TC_HOST_CLONES void row_silu(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return silu(v); });
}

}  // namespace

TC_HOST_CLONES float row_max(const float* x, int64_t n) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = -std::numeric_limits<float>::infinity();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) lanes[l] = max_nan(x[i + l], lanes[l]);
  for (int l = 0; i + l < n; ++l) lanes[l] = max_nan(x[i + l], lanes[l]);
  float result = lanes[0];
  for (int l = 1; l < kLanes; ++l) result = max_nan(result, lanes[l]);
  return result;
}

TC_HOST_CLONES float row_max_magnitude(const float* x, int64_t n) {
  float result = 0;
  for (int64_t i = 0; i < n; ++i) result = max_nan(std::abs(x[i]), result);
  return result;
}

TC_HOST_CLONES int64_t row_find(const float* x, float value, int64_t n) {
  const auto is_it = [=](float v) { return (v == value) | ((v != v) & (value != value)); };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    int found = 0;
    for (int l = 0; l < kLanes; ++l) found |= is_it(x[i + l]);
    if (found) break;
  }
  while (i < n && !is_it(x[i])) ++i;
  return i;
}

TC_HOST_CLONES float row_sum(const float* x, int64_t n) {
  return sum_of(n, [=](int64_t i) { return x[i]; });
}

TC_HOST_CLONES float row_dot(const float* x, const float* y, int64_t n) {
  return sum_of(n, [=](int64_t i) { return x[i] * y[i]; });
}

TC_HOST_CLONES float row_dot(const float* x, const uint16_t* y, int64_t n) {
  return sum_of(n, [=](int64_t i) { return x[i] * bfloat16_to_float(y[i]); });
}

TC_HOST_CLONES float row_sum_of_squares(const float* x, float center, int64_t n) {
  return sum_of(n, [=](int64_t i) { return (x[i] - center) * (x[i] - center); });
}

TC_HOST_CLONES float row_sum_of_scaled_squares(const float* x, float scale, int64_t n) {
  return sum_of(n, [=](int64_t i) { return (x[i] * scale) * (x[i] * scale); });
}

TC_HOST_CLONES float row_exp(float* y, const float* x, float shift, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = exp(x[i] - shift);
  return sum_of(n, [=](int64_t i) { return y[i]; });
}

TC_HOST_CLONES void row_scale(float* y, const float* x, float scale, float shift, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale + shift;
}

TC_HOST_CLONES void row_add(float* y, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}

TC_HOST_CLONES void row_maximum(float* y, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = max_nan(x[i], y[i]);
}

TC_HOST_CLONES void row_minimum(float* y, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = min_nan(x[i], y[i]);
}

TC_HOST_CLONES void row_multiply(float* y, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] *= x[i];
}

TC_HOST_CLONES void row_add_scaled(float* y, const float* x, float scale, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += x[i] * scale;
}

TC_HOST_CLONES void row_tanh(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return tanh(v); });
}

TC_HOST_CLONES void row_sigmoid(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return sigmoid(v); });
}

TC_HOST_CLONES void row_erf(float* y, const float* x, int64_t n) {
  map(y, x, n, [](float v) { return erf(v); });
}

void row_activate(float* y, const float* x, Activation activation, int64_t n) {
  switch (activation) {
    case Activation::none:
      if (y != x) std::memmove(y, x, size_t(n) * sizeof(float));
      return;
    case Activation::relu:
      return row_relu(y, x, n);
    case Activation::gelu:
      return row_gelu(y, x, n);
    case Activation::gelu_tanh:
      return row_gelu_tanh(y, x, n);
    case Activation::silu:
      return row_silu(y, x, n);
  }
}

bool is_row_dtype(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

void load_row(float* to, const void* from, DType dtype, int64_t stride, int64_t n) {
  if (dtype == DType::float16)
    return halves_to_floats(to, static_cast<const uint16_t*>(from), stride, n);
  if (dtype == DType::bfloat16)
    return bfloat16s_to_floats(to, static_cast<const uint16_t*>(from), stride, n);
  if (dtype != DType::float32) fail_dtype("load_row", dtype);
  const float* source = static_cast<const float*>(from);
  if (stride == 1)
    std::memmove(to, source, size_t(n) * sizeof(float));
  else
    for (int64_t i = 0; i < n; ++i) to[i] = source[i * stride];
}

void store_row(void* to, const float* from, DType dtype, int64_t stride, int64_t n) {
  if (dtype == DType::float16) return floats_to_halves(static_cast<uint16_t*>(to), from, stride, n);
  if (dtype == DType::bfloat16)
    return floats_to_bfloat16s(static_cast<uint16_t*>(to), from, stride, n);
  if (dtype != DType::float32) fail_dtype("store_row", dtype);
  float* target = static_cast<float*>(to);
  if (stride == 1)
    std::memmove(target, from, size_t(n) * sizeof(float));
  else
    for (int64_t i = 0; i < n; ++i) target[i * stride] = from[i];
}

void load_codes(float* to, const void* from, DType dtype, int64_t stride, int64_t n) {
  if (dtype == DType::int8) return int8s_to_floats(to, static_cast<const int8_t*>(from), stride, n);
  if (dtype == DType::float8_e5m2)
    return e5m2s_to_floats(to, static_cast<const uint8_t*>(from), stride, n);
  if (dtype != DType::float8_e4m3fn)
    fail_dtype("load_codes", dtype, "int8, float8_e4m3fn or float8_e5m2");
  e4m3s_to_floats(to, static_cast<const uint8_t*>(from), stride, n);
}

bool is_element_dtype(DType dtype) {
  return is_row_dtype(dtype) || dtype == DType::int8 || dtype == DType::float8_e4m3fn ||
         dtype == DType::float8_e5m2;
}

void load_elements(float* to, const void* from, DType dtype, int64_t stride, int64_t n) {
  if (is_row_dtype(dtype))
    load_row(to, from, dtype, stride, n);
  else
    load_codes(to, from, dtype, stride, n);
}

float* scratch(Slot slot, int64_t num_floats) {
  constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(float* p) const { ::operator delete(p, kAlignment); }
  };
  struct Buffer {
    std::unique_ptr<float, Free> data;
    int64_t size = 0;
  };
  thread_local Buffer buffers[int(Slot::bias) + 1];
  Buffer& buffer = buffers[int(slot)];
  if (buffer.size < num_floats) {
    buffer = {};  // never both the old and the new one
    const bool can_be_counted = num_floats <= std::numeric_limits<int64_t>::max() / 4;
    const size_t bytes = can_be_counted ? size_t(num_floats) * sizeof(float) : 0;
    void* const memory = bytes ? ::operator new(bytes, kAlignment, std::nothrow) : nullptr;
    if (!memory)
      fail(ErrorKind::out_of_memory, "no host memory for a row of ", num_floats,
           " floats that a thread works on");
    buffer.data.reset(static_cast<float*>(memory));
    buffer.size = num_floats;
  }
  return buffer.data.get();
}

Rows::Rows(const TensorView& view, int axis)
    : data_(static_cast<std::byte*>(op::shared_address(view))), dtype_(view.dtype()) {
  if (!is_row_dtype(dtype_)) fail_dtype("rows", dtype_);
  axis = normalize_axis(axis, view.rank(), "rows");
  length_ = view.shape(axis);
  stride_ = view.stride(axis);
  for (int i = 0; i < view.rank(); ++i) {
    if (i == axis) continue;
    outer_shape_.push_back(view.shape(i));
    outer_strides_.push_back(view.stride(i));
    count_ *= view.shape(i);
  }
}

std::byte* Rows::address(int64_t row) const {
  int64_t offset = 0;
  for (int i = outer_shape_.rank() - 1; i > 0; --i) {
    offset += row % outer_shape_[i] * outer_strides_[i];
    row /= outer_shape_[i];
  }
  if (!outer_shape_.empty()) offset += row * outer_strides_[0];
  return data_ + offset * int64_t(dtype_bytes(dtype_));
}

const float* Rows::read(int64_t row, float* buffer) const {
  if (is_direct()) return reinterpret_cast<const float*>(address(row));
  load_row(buffer, address(row), dtype_, stride_, length_);
  return buffer;
}

float* Rows::target(int64_t row, float* buffer) const {
  return is_direct() ? reinterpret_cast<float*>(address(row)) : buffer;
}

void Rows::commit(int64_t row, const float* values) const {
  if (!is_direct()) store_row(address(row), values, dtype_, stride_, length_);
}

int64_t Rows::num_beside(int64_t row) const {
  constexpr int64_t kTileFloats = 128 * 1024;  // of two tiles in a second-level cache
  const int last = outer_shape_.rank() - 1;
  if (last < 0 || outer_strides_[last] != 1 || std::abs(stride_) < kLine) return 1;
  if (length_ > kTileFloats) return 1;
  const int64_t wanted =
      std::clamp<int64_t>(kTileFloats / std::max<int64_t>(1, length_), kLine, 4 * kLine);
  return std::min(wanted, outer_shape_[last] - row % outer_shape_[last]);
}

// A block of lines passes through a buffer, so that both sides are read and written in runs.
void Rows::read_beside(int64_t row, int64_t count, float* tile) const {
  const int64_t line_bytes = stride_ * int64_t(dtype_bytes(dtype_));
  const std::byte* from = address(row);
  float block[kLine][4 * kLine];
  for (int64_t i = 0; i < length_; i += kLine) {
    const int64_t lines = std::min(kLine, length_ - i);
    for (int64_t l = 0; l < lines; ++l)
      load_row(block[l], from + (i + l) * line_bytes, dtype_, 1, count);
    for (int64_t r = 0; r < count; ++r)
      for (int64_t l = 0; l < lines; ++l) tile[r * pitch() + i + l] = block[l][r];
  }
}

void Rows::commit_beside(int64_t row, int64_t count, const float* tile) const {
  if (num_beside(row) < count) {
    for (int64_t r = 0; r < count; ++r)
      store_row(address(row + r), tile + r * pitch(), dtype_, stride_, length_);
    return;
  }
  const int64_t line_bytes = stride_ * int64_t(dtype_bytes(dtype_));
  std::byte* const to = address(row);
  float block[kLine][4 * kLine];
  for (int64_t i = 0; i < length_; i += kLine) {
    const int64_t lines = std::min(kLine, length_ - i);
    for (int64_t r = 0; r < count; ++r)
      for (int64_t l = 0; l < lines; ++l) block[l][r] = tile[r * pitch() + i + l];
    for (int64_t l = 0; l < lines; ++l)
      store_row(to + (i + l) * line_bytes, block[l], dtype_, 1, count);
  }
}

}  // namespace tensorcraft::host
