// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/checks/latent_rows.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/latent_row.h"

namespace tensorcraft::op {

TensorView latent_rows(std::string_view op, std::string_view name, const TensorView& cache,
                       CacheLayout layout) {
  const int rank = cache.rank(), head = layout == CacheLayout::nhd ? 2 : 1;
  const bool fits = rank == 3 || (rank == 4 && cache.shape(head) == 1);
  if (!fits || cache.shape(rank - 1) != LatentRow::kBytes)
    fail(ErrorKind::value, op, ": ", name, ": expected (blocks, block_size, ", LatentRow::kBytes,
         "), or with an axis of one head as layout says, for rows of bytes, got shape ",
         cache.shape());
  const TensorView rows = rank == 3                    ? cache.expand_dims(2)
                          : layout == CacheLayout::nhd ? cache
                                                       : cache.transpose(1, 2);
  const auto is_whole = [&](int axis) {
    return rows.shape(axis) < 2 || rows.stride(axis) % LatentRow::kAlignment == 0;
  };
  if (rows.size() > 0 && (rows.stride(3) != 1 || !is_whole(0) || !is_whole(1) ||
                          !rows.is_aligned(LatentRow::kAlignment)))
    fail(ErrorKind::value, op, ": ", name, ": rows of bytes must be contiguous and begin at ",
         "multiples of ", LatentRow::kAlignment, " bytes, got address ", rows.data(),
         " and strides ", cache.strides(), "; allocate the cache as uint8 (blocks, block_size, ",
         LatentRow::kBytes, ")");
  return rows;
}

}  // namespace tensorcraft::op
