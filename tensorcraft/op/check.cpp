// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/check.hpp"

#include <array>

namespace tensorcraft::op {

void check_dtype(std::string_view op, std::string_view arg, const TensorView& t,
                 std::initializer_list<DType> dtypes) {
  TensorMatcher::any_shape().with_any_strides().with_dtype(dtypes).verify(t, op, arg);
}

void check_like(std::string_view op, std::string_view arg, const TensorView& t, DType dtype,
                const Dims& shape) {
  std::array<SizeRef, kMaxRank> sizes;
  for (int i = 0; i < shape.rank(); ++i) sizes[size_t(i)] = shape[i];
  TensorMatcher(std::span<const SizeRef>(sizes.data(), size_t(shape.rank())))
      .with_any_strides()
      .with_dtype(dtype)
      .verify(t, op, arg);
}

void check_apart(std::string_view op, std::string_view out, const TensorView& written,
                 std::string_view in, const TensorView& read, std::string_view fix) {
  const Overlap overlap = overlap_of(written, read);
  if (overlap == Overlap::none) return;
  fail(ErrorKind::value, op, ": ", out, overlap == Overlap::certain ? " overlaps" : " may overlap",
       " the memory of ", in, "; ", fix);
}

}  // namespace tensorcraft::op
