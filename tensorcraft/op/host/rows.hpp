// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/op/value.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tensorcraft::host {

// Values that are added into one float, one after the other. What such parts come to is added in
// double, so rounding does not grow with the length of a sum.
inline constexpr int64_t kFloatChain = 64;

// Row functions: x and y hold n floats next to each other and may be the same row. Sums are taken
// in 32 partial sums, so they do not depend on the number of threads.
float row_max(const float* x, int64_t n);            // -inf if n is 0; NaN if x has one
float row_max_magnitude(const float* x, int64_t n);  // 0 if n is 0; NaN if x has one
// The first place of value, or of a NaN if it is one; n if there is none.
int64_t row_find(const float* x, float value, int64_t n);
float row_sum(const float* x, int64_t n);
float row_dot(const float* x, const float* y, int64_t n);
float row_dot(const float* x, const uint16_t* y, int64_t n);              // y is bfloat16
float row_sum_of_squares(const float* x, float center, int64_t n);        // sum of (x - center)^2
float row_sum_of_scaled_squares(const float* x, float scale, int64_t n);  // sum of (x scale)^2
float row_exp(float* y, const float* x, float shift, int64_t n);  // y = e^(x - shift); its sum
void row_scale(float* y, const float* x, float scale, float shift,
               int64_t n);                               // y = x scale + shift
void row_add(float* y, const float* x, int64_t n);       // y += x
void row_multiply(float* y, const float* x, int64_t n);  // y *= x
void row_maximum(float* y, const float* x, int64_t n);   // y = max(x, y), NaN if either is NaN
void row_minimum(float* y, const float* x, int64_t n);   // the same of min
void row_add_scaled(float* y, const float* x, float scale, int64_t n);  // y += x scale
void row_activate(float* y, const float* x, Activation activation, int64_t n);
void row_tanh(float* y, const float* x, int64_t n);
void row_sigmoid(float* y, const float* x, int64_t n);
void row_erf(float* y, const float* x, int64_t n);

// The dtypes that load_row and store_row know: float32, float16, bfloat16.
bool is_row_dtype(DType dtype);
// n elements, `stride` elements apart, to floats and back; storing rounds to nearest even. Fails
// with kind type for another dtype.
void load_row(float* to, const void* from, DType dtype, int64_t stride, int64_t n);
void store_row(void* to, const float* from, DType dtype, int64_t stride, int64_t n);
// Likewise for 8-bit values: int8, float8_e4m3fn or float8_e5m2. Fails with kind type for another
// dtype.
void load_codes(float* to, const void* from, DType dtype, int64_t stride, int64_t n);
// Likewise for either kind.
bool is_element_dtype(DType dtype);
void load_elements(float* to, const void* from, DType dtype, int64_t stride, int64_t n);

// Memory of the calling thread, 64-byte aligned, kept for its next use; contents are undefined.
// Each slot is one buffer: a function that calls another with the same slot loses its contents.
// Kind out_of_memory if there is no room.
enum class Slot : int { row_a, row_b, row_c, row_d, pack_a, pack_b, tile, tile_out, line, bias };
float* scratch(Slot slot, int64_t num_floats);

// The rows of a tensor along one axis, which may have any strides.
class Rows {
 public:
  // Fails with kind type unless is_row_dtype(view.dtype()), kind axis for rank 0 or a bad axis.
  explicit Rows(const TensorView& view, int axis = -1);

  int64_t count() const { return count_; }
  int64_t length() const { return length_; }
  int64_t stride() const { return stride_; }
  std::byte* address(int64_t row) const;

  // The row as floats: itself if it is float32 and contiguous, else a copy in `buffer`.
  const float* read(int64_t row, float* buffer) const;
  // Where to compute the row: itself under the same condition, else `buffer`; commit() puts it
  // back.
  float* target(int64_t row, float* buffer) const;
  void commit(int64_t row, const float* values) const;

  // How many rows from `row` on are better read together: if rows are columns of a matrix, so many
  // that a line of memory serves all of them; else 1.
  int64_t num_beside(int64_t row) const;
  // That many rows or fewer as floats, pitch() apart, and back.
  void read_beside(int64_t row, int64_t count, float* tile) const;
  void commit_beside(int64_t row, int64_t count, const float* tile) const;
  int64_t pitch() const { return length_ + 16; }  // a power of two would use few lines of a cache

 private:
  bool is_direct() const { return dtype_ == DType::float32 && stride_ == 1; }

  std::byte* data_;
  DType dtype_;
  int64_t count_ = 1, length_ = 0, stride_ = 0;
  Dims outer_shape_, outer_strides_;
};

// Rows of `length` elements that a thread takes at least: about 16,000 elements.
inline int64_t row_grain(int64_t length) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, length));
}

// Calls f(row) for each of `count` rows of `length` elements on all threads.
template <class F>
void for_each_row(int64_t count, int64_t length, F&& f) {
  parallel_for(count, row_grain(length), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) f(row);
  });
}

// Calls f(row, x, y) for each row on all threads: x its floats in `from`, y the place of those of
// the same row of `to`. Both are the same memory only if the tensors are. Uses the slots row_a,
// row_b, tile and tile_out.
template <class F>
void map_rows(const Rows& from, const Rows& to, F&& f) {
  const auto one = [&](int64_t row) {
    float* const y = to.target(row, scratch(Slot::row_b, to.length()));
    f(row, from.read(row, scratch(Slot::row_a, from.length())), y);
    to.commit(row, y);
  };
  const auto several = [&](int64_t row, int64_t count) {
    float* const x = scratch(Slot::tile, count * from.pitch());
    float* const y = scratch(Slot::tile_out, count * to.pitch());
    from.read_beside(row, count, x);
    for (int64_t i = 0; i < count; ++i) f(row + i, x + i * from.pitch(), y + i * to.pitch());
    to.commit_beside(row, count, y);
  };
  const int64_t grain =
      from.count() > 0 ? std::max(from.num_beside(0), row_grain(from.length())) : 1;
  parallel_for(from.count(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin, count; row < end; row += count) {
      count = std::min(end - row, from.num_beside(row));
      count == 1 ? one(row) : several(row, count);
    }
  });
}

}  // namespace tensorcraft::host
