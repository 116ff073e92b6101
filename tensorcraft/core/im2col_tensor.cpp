// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/im2col_tensor.hpp"

#include "tensorcraft/core/error.hpp"

namespace tensorcraft {

void check_im2col(const Im2colTensor& t) {
  const TiledTensor& images = t.images;
  if (images.rank < 3 || images.rank > 5)
    fail(ErrorKind::value, "im2col map: rank must be in [3, 5], got ", images.rank);
  if (images.box[1] < 1 || images.box[1] > kMaxIm2colPlaces)
    fail(ErrorKind::value, "im2col map: places of a copy must be in [1, ", kMaxIm2colPlaces,
         "], got ", images.box[1]);
  TiledTensor tiled = images;  // the rules of boxes hold, but for the number of places
  for (size_t i = 1; i < size_t(images.rank); ++i) tiled.box[i] = 1;
  check_tiled(tiled);
  const int32_t end = im2col_corner_end(t.num_axes());
  for (int i = 0; i < t.num_axes(); ++i) {
    for (const int32_t corner : {t.lower[size_t(i)], t.upper[size_t(i)]})
      if (corner < -end || corner >= end)
        fail(ErrorKind::value, "im2col map: corner ", i, " must be in [", -end, ", ", end,
             "), got ", corner, "; use a variant without TMA or a smaller window");
    if (int64_t(images.dims[size_t(i) + 1]) - 1 + t.upper[size_t(i)] < t.lower[size_t(i)])
      fail(ErrorKind::value, "im2col map: axis ", i, " has no window: the first is at ",
           t.lower[size_t(i)], ", the last at ",
           int64_t(images.dims[size_t(i) + 1]) - 1 + t.upper[size_t(i)]);
  }
}

}  // namespace tensorcraft
