// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/embedding/embedding.hpp"

#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

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
      "embedding: ids: Dtype value [float32] not in the allowed options: [int32, int64]");
  EXPECT_THROW(embedding(good, table.view().reshape({6})), Error);
}

}  // namespace
}  // namespace tensorcraft
