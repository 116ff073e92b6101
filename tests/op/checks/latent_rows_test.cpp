// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/checks/latent_rows.hpp"

#include "tensorcraft/runtime/memory/tensor.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::op {
namespace {

TensorView rows_of(const TensorView& cache, CacheLayout layout = CacheLayout::nhd) {
  return latent_rows("append_kv", "k_cache", cache, layout);
}

TEST(LatentRows, HaveOneHead) {
  const Tensor plain(DType::uint8, {3, 4, 656}), nhd(DType::uint8, {3, 4, 1, 656}),
      hnd(DType::uint8, {3, 1, 4, 656});
  for (const TensorView& rows : {rows_of(plain), rows_of(plain, CacheLayout::hnd), rows_of(nhd),
                                 rows_of(hnd, CacheLayout::hnd)}) {
    EXPECT_EQ(rows.shape(), (Dims{3, 4, 1, 656}));
    EXPECT_EQ(rows.stride(0), 4 * 656);
    EXPECT_EQ(rows.stride(1), 656);
    EXPECT_EQ(rows.stride(3), 1);
  }
  for (const TensorView& other :
       {nhd.view().slice(3, 0, 640), hnd.view(), plain.view().select(0, 0)})
    test::expect_error_with(ErrorKind::value,
                            "append_kv: k_cache: expected (blocks, block_size, 656)",
                            [&] { rows_of(other); });
}

TEST(LatentRows, BeginAtMultiplesOf16Bytes) {
  const Tensor wide(DType::uint8, {3, 4, 672}), odd(DType::uint8, {3, 4, 664}),
      twice(DType::uint8, {3, 4, 1312});
  EXPECT_EQ(rows_of(wide.view().slice(2, 16, 672)).stride(1), 672);
  EXPECT_EQ(rows_of(odd.view().slice(1, 0, 1).slice(0, 0, 1).slice(2, 0, 656)).shape(1), 1);
  EXPECT_EQ(rows_of(odd.view().slice(0, 0, 0).slice(2, 0, 656)).size(), 0);
  for (const TensorView& other : {odd.view().slice(2, 0, 656), wide.view().slice(2, 8, 664),
                                  twice.view().slice(2, 0, 1312, 2)})
    test::expect_error_with(ErrorKind::value,
                            "append_kv: k_cache: rows of bytes must be contiguous",
                            [&] { rows_of(other); });
}

}  // namespace
}  // namespace tensorcraft::op
