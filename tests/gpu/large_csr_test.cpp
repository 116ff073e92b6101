// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/device/csr.h"
#include "tensorcraft/ops/csr/csr.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

// A matrix of more than 2^31 elements, of which three are stored.
namespace tensorcraft::test {
namespace {

constexpr int64_t kCols = (int64_t(1) << 30) + (int64_t(1) << 23) + 5;
using Numbers = std::vector<int64_t>;
using Floats = std::vector<float>;
const Device kGpu = Device::cuda(0);

Numbers part(const Tensor& t, int64_t from, int64_t to) {
  const Tensor host(DType::int64, {to - from});
  copy_bytes(host, t.slice(0, from, to), t.stream());
  return host.to_vector<int64_t>();
}

TEST(LargeCsr, HasEveryPlaceInTheTransposedMatrix) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const Tensor data = Tensor::from<float>({1, 3, 2}, {3}, kGpu);
  const Tensor indices = Tensor::from<int64_t>({0, 0, kCols - 1}, {3}, kGpu);
  const Tensor indptr = Tensor::from<int64_t>({0, 1, 3}, {3}, kGpu);
  const Tensor dense = csr_to_dense(data, indices, indptr, {.cols = kCols});
  EXPECT_EQ(csr_offsets(dense, {.index_dtype = DType::int64}).to_vector<int64_t>(),
            (Numbers{0, 1, 3}));
  const CsrElements again = csr_from_dense(dense, indptr, {.stored = 3});
  EXPECT_EQ(again.data.to_vector<float>(), (Floats{1, 3, 2}));
  EXPECT_EQ(again.indices.to_vector<int64_t>(), (Numbers{0, 0, kCols - 1}));

  const CsrArrays t = csr_transpose(data, indices, indptr, {.cols = kCols});
  EXPECT_EQ(t.data.to_vector<float>(), (Floats{1, 3, 2}));
  EXPECT_EQ(t.indices.to_vector<int64_t>(), (Numbers{0, 1, 1}));
  EXPECT_EQ(part(t.indptr, 0, 3), (Numbers{0, 2, 2}));
  EXPECT_EQ(part(t.indptr, kCols - 1, kCols + 1), (Numbers{2, 3}));
}

// The matrix has 2^31 empty rows and more.
TEST(LargeCsr, StartsOfRowsBeyond31Bits) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  constexpr int64_t kRows = (int64_t(1) << 31) + 77;
  const Tensor indptr(DType::int64, {kRows + 1}, kGpu);
  cuda::fill_async(indptr.data(), 0, indptr.nbytes(), indptr.stream());
  const int64_t last = merge_tiles(kRows, 0);
  const Tensor starts = csr_starts(indptr, {.stored = 0});
  ASSERT_EQ(starts.size(), last + 1);
  EXPECT_EQ(part(starts, 0, 2), (Numbers{0, kMergeTile}));
  EXPECT_EQ(part(starts, last - 1, last + 1), (Numbers{(last - 1) * kMergeTile, kRows}));
}

}  // namespace
}  // namespace tensorcraft::test
