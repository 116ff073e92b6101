// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/checks/check.hpp"

#include <array>
#include <cmath>

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

void check_scores(std::string_view op, const std::optional<float>& scale,
                  const std::optional<float>& softcap, const std::optional<Dims>& window) {
  if (scale && !std::isfinite(*scale))
    fail(ErrorKind::value, op, ": scale must be finite, got ", *scale);
  if (softcap && !(*softcap > 0 && std::isfinite(*softcap)))
    fail(ErrorKind::value, op, ": softcap must be above 0 and finite, got ", *softcap,
         "; leave it out for none");
  if (!window) return;
  const Dims& w = *window;
  if (w.rank() != 2 || w[0] < -1 || w[1] < -1)
    fail(ErrorKind::value, op,
         ": window must be two numbers, left and right, of at least -1, which is unlimited; got ",
         w, "; a window of w keys, the query's own included, is (w - 1, 0)");
}

void check_apart(std::string_view op, std::string_view out, const TensorView& written,
                 std::string_view in, const TensorView& read, std::string_view fix) {
  const Overlap overlap = overlap_of(written, read);
  if (overlap == Overlap::none) return;
  fail(ErrorKind::value, op, ": ", out, overlap == Overlap::certain ? " overlaps" : " may overlap",
       " the memory of ", in, "; ", fix);
}

}  // namespace tensorcraft::op
