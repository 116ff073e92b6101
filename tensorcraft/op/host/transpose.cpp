// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/transpose.hpp"

#include "tensorcraft/op/host/simd.hpp"

#include <algorithm>
#include <bit>

namespace tensorcraft::host {
namespace {

constexpr int64_t kSide = 4;                // of the squares that are transposed in registers
constexpr int64_t kRows = 16;               // a line of memory of the result
constexpr uint32_t kExponent = 0x7f800000;  // all ones: an infinity or NaN

typedef float Quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint32_t Bits __attribute__((vector_size(16)));

Quad load(const float* from) { return *reinterpret_cast<const Quad*>(from); }
void store(float* to, Quad value) { *reinterpret_cast<Quad*>(to) = value; }
// All ones where a lane is an infinity or NaN.
Bits not_finite(Quad x) {
  const Bits exponent = {kExponent, kExponent, kExponent, kExponent};
  return Bits((reinterpret_cast<Bits>(x) & exponent) == exponent);
}
bool is_finite(float x) { return (std::bit_cast<uint32_t>(x) & kExponent) != kExponent; }

// 4 rows of 4 floats, whose columns go to four addresses.
void transpose_square(float* const (&to)[kSide], const float* from, int64_t stride, Bits& found) {
  const Quad a = load(from), b = load(from + stride), c = load(from + 2 * stride),
             d = load(from + 3 * stride);
  found |= (not_finite(a) | not_finite(b)) | (not_finite(c) | not_finite(d));
  const Quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
             ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7),
             cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5),
             cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store(to[0], __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
  store(to[1], __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
  store(to[2], __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  store(to[3], __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

// Where each column goes, one after the other.
struct Addresses {
  Addresses(float* to, const Spread& spread) : spread_(spread), next_run_(to), next_(to) {}

  float* next() {
    float* const found = next_;
    next_ += spread_.stride;
    if (++in_run_ == spread_.run) {
      in_run_ = 0;
      next_ = next_run_ += spread_.next;
    }
    return found;
  }

 private:
  const Spread& spread_;
  float *next_run_, *next_;
  int64_t in_run_ = 0;
};

TC_HOST_CLONES bool all_finite(const float* x, int64_t n) {
  uint32_t some = 0;
  for (int64_t i = 0; i < n; ++i)
    some |= uint32_t((std::bit_cast<uint32_t>(x[i]) & kExponent) == kExponent);
  return some == 0;
}

}  // namespace

bool transpose(float* to, const Spread& spread, const float* from, int64_t stride, int64_t rows,
               int64_t columns) {
  Bits found{};
  bool rest_is_finite = true;
  const auto one_by_one = [&](int64_t row, int64_t end, int64_t column, float* at) {
    for (int64_t r = row; r < end; ++r) {
      const float value = from[r * stride + column];
      at[r] = value;
      rest_is_finite = rest_is_finite && is_finite(value);
    }
  };
  for (int64_t row = 0; row < rows; row += kRows) {
    const int64_t end = std::min(rows, row + kRows), full = row + (end - row) / kSide * kSide;
    Addresses addresses(to, spread);
    int64_t column = 0;
    for (; column + kSide <= columns; column += kSide) {
      float* at[kSide];
      for (float*& one : at) one = addresses.next();
      for (int64_t r = row; r < full; r += kSide) {
        float* const square[kSide] = {at[0] + r, at[1] + r, at[2] + r, at[3] + r};
        transpose_square(square, from + r * stride + column, stride, found);
      }
      for (int64_t i = 0; i < kSide; ++i) one_by_one(full, end, column + i, at[i]);
    }
    for (; column < columns; ++column) one_by_one(row, end, column, addresses.next());
  }
  return rest_is_finite && (found[0] | found[1] | found[2] | found[3]) == 0;
}

// A function of its own: clang makes no clones of one that a file it is compiled with has called.
bool are_finite(const float* x, int64_t n) { return all_finite(x, n); }

}  // namespace tensorcraft::host
