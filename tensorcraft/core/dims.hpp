// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>

namespace tensorcraft {

// The most dimensions a tensor has.
inline constexpr int kMaxRank = 8;

// A shape or the strides of one tensor, in elements: up to kMaxRank 64-bit values, never on the
// heap.
class Dims {
 public:
  // The values in order. Fails with kind value above kMaxRank dimensions.
  Dims() = default;
  Dims(std::initializer_list<int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  explicit Dims(std::span<const int64_t> values);

  // Number of values, and the values; an index is not checked.
  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  int64_t operator[](int i) const { return values_[i]; }
  int64_t& operator[](int i) { return values_[i]; }
  int64_t back() const { return values_[rank_ - 1]; }
  const int64_t* begin() const { return values_; }
  const int64_t* end() const { return values_ + rank_; }
  const int64_t* data() const { return values_; }
  operator std::span<const int64_t>() const { return {values_, size_t(rank_)}; }  // NOLINT
  // One more at the end; fails with kind value above kMaxRank.
  void push_back(int64_t value);
  friend bool operator==(const Dims& a, const Dims& b);

 private:
  int64_t values_[kMaxRank] = {};
  int rank_ = 0;
};

// "[32, 128]"
std::ostream& operator<<(std::ostream& out, const Dims& dims);

// Number of elements; fails with kind value on a negative dimension and on overflow of int64.
int64_t num_elements(const Dims& shape);
// Row-major strides of a shape, in elements.
Dims contiguous_strides(const Dims& shape);
// The shape both broadcast to by NumPy's rule; fails with kind value naming both shapes.
Dims broadcast_shapes(const Dims& a, const Dims& b);
// axis in [-rank, rank) as an index from the front; else kind axis, with `what` as its head.
int normalize_axis(int64_t axis, int rank, const char* what,
                   std::source_location where = std::source_location::current());

}  // namespace tensorcraft
