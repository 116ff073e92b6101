// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/dims.hpp"

#include "tensorcraft/core/error.hpp"

#include <algorithm>
#include <ostream>

namespace tensorcraft {

Dims::Dims(std::span<const int64_t> values) {
  if (values.size() > size_t(kMaxRank))
    fail(ErrorKind::value, "a tensor has ", values.size(), " dimensions; at most ", kMaxRank,
         " are accepted");
  std::copy(values.begin(), values.end(), values_);
  rank_ = int(values.size());
}

void Dims::push_back(int64_t value) {
  if (rank_ == kMaxRank) fail(ErrorKind::value, "a tensor has more than ", kMaxRank, " dimensions");
  values_[rank_++] = value;
}

bool operator==(const Dims& a, const Dims& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::ostream& operator<<(std::ostream& out, const Dims& dims) {
  out << '[';
  for (int i = 0; i < dims.rank(); ++i) out << (i ? ", " : "") << dims[i];
  return out << ']';
}

int64_t num_elements(const Dims& shape) {
  int64_t n = 1;
  bool overflow = false, zero = false;
  for (const int64_t d : shape) {
    if (d < 0) fail(ErrorKind::value, "shape ", shape, " has a negative dimension");
    zero |= d == 0;
    overflow |= !zero && __builtin_mul_overflow(n, d, &n);
  }
  if (zero) return 0;
  if (overflow) fail(ErrorKind::value, "shape ", shape, " has more elements than 64 bits count");
  return n;
}

Dims contiguous_strides(const Dims& shape) {
  Dims strides = shape;
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    // Wraps only if the shape is empty or refused by num_elements: then nothing reads it.
    step = int64_t(uint64_t(step) * uint64_t(std::max<int64_t>(shape[i], 1)));
  }
  return strides;
}

Dims broadcast_shapes(const Dims& a, const Dims& b) {
  const Dims& longer = a.rank() >= b.rank() ? a : b;
  const Dims& shorter = a.rank() >= b.rank() ? b : a;
  Dims out = longer;
  const int offset = longer.rank() - shorter.rank();
  for (int i = 0; i < shorter.rank(); ++i) {
    const int64_t x = longer[offset + i], y = shorter[i];
    if (x != y && x != 1 && y != 1)
      fail(ErrorKind::value, "shapes ", a, " and ", b, " do not broadcast: dimension ", offset + i,
           " is ", x, " and ", y);
    out[offset + i] = x == 1 ? y : x;
  }
  return out;
}

int normalize_axis(int64_t axis, int rank, const char* what, std::source_location where) {
  if (rank == 0) fail({ErrorKind::axis, where}, what, ": expected at least 1 axis, got a scalar");
  if (axis < -rank || axis >= rank)
    fail({ErrorKind::axis, where}, what, ": axis must be in [", -rank, ", ", rank, "), got ", axis);
  return int(axis < 0 ? axis + rank : axis);
}

}  // namespace tensorcraft
