// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/embedding/embedding.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tensorcraft {
namespace {

using test::expect_error;

TEST(Embedding, RefusesAnIdOutsideTheTableBeforeItWrites) {
  std::vector<float> table(6, 1), out(4, -7);
  std::vector<int64_t> ids = {2, 3};
  const TensorView to(out.data(), DType::float32, {2, 2}),
      from(table.data(), DType::float32, {3, 2});
  const TensorView indices(ids.data(), DType::int64, {2});
  for (const char* variant : {"cpu", "reference"}) {
    expect_error(
        ErrorKind::index, [&] { embedding(to, indices, from, {.variant = variant}); },
        "embedding: ids: element 1 is 3, expected [0, 3), the rows of table");
  }
  ids[1] = -1;
  expect_error(
      ErrorKind::index, [&] { embedding(indices, from); },
      "embedding: ids: element 1 is -1, expected [0, 3), the rows of table");
  EXPECT_EQ(out, std::vector<float>(4, -7));
}

TEST(Embedding, RefusesIdsThatAreNoIntegersAndATableThatIsNoMatrix) {
  Tensor ids(DType::float32, {2}), table(DType::float32, {3, 2}), good(DType::int32, {2});
  expect_error(
      ErrorKind::type, [&] { embedding(ids, table); },
      "embedding: ids: Dtype value [float32] not in the allowed options: [int32, int64]"
      "; tc.astype(ids, tc.int32) converts it");
  EXPECT_THROW(embedding(good, table.view().reshape({6})), Error);
  expect_error(
      ErrorKind::value, [&] { embedding(good.view().reshape({1, 1, 1, 1, 1, 1, 1, 2}), table); },
      "embedding: ids: expected at most 7 dimensions, since the result has one more, got shape [1, "
      "1, 1, 1, 1, 1, 1, 2]");
}

TEST(EmbeddingOnGpu, MakesTheRowOfAnIdOutsideTheTableNan) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const Device gpu = Device::cuda(0);
  const std::vector<float> values(12, 5);
  const std::vector<int64_t> indices = {-1, 2, 3};
  Tensor table(DType::float32, {3, 4}, gpu), ids(DType::int64, {3}, gpu);
  table.copy_from_host(values.data(), table.nbytes());
  ids.copy_from_host(indices.data(), ids.nbytes());
  for (const char* variant : {"naive", "vectorized"}) {
    std::vector<float> out(12);
    embedding(ids, table, {.variant = variant}).copy_to_host(out.data(), 12 * sizeof(float));
    for (int i = 0; i < 12; ++i) EXPECT_EQ(std::isnan(out[size_t(i)]), i / 4 != 1) << variant << i;
  }
}

}  // namespace
}  // namespace tensorcraft
