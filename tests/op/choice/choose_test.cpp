// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/choice/choose.hpp"

#include "tests/op/l2_normalize_call.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::op {
namespace {

using test::expect_error;

class VariantByName : public test::L2NormalizeCall {};

TEST_F(VariantByName, RunsTheVariantThatIsNamed) {
  const float given[] = {3, 4};
  x_.copy_from_host(given, sizeof given);
  for (const char* variant : {"", "cpu", "reference"}) {
    run(out_, x_, variant);
    EXPECT_FLOAT_EQ(out_.data_as<float>()[0], 0.6f) << variant;
    EXPECT_FLOAT_EQ(out_.data_as<float>()[1], 0.8f) << variant;
  }
}

TEST_F(VariantByName, AnUnknownVariantListsThemAll) {
  expect_error(
      ErrorKind::value, [&] { run(out_, x_, "blok"); },
      "l2_normalize: no variant is named \"blok\"; there are in_registers, cluster, block, naive, "
      "cpu, reference; did you mean block?");
}

TEST_F(VariantByName, AVariantOfAnotherDeviceSaysSo) {
  expect_error(
      ErrorKind::unsupported, [&] { run(out_, x_, "block"); },
      "l2_normalize: variant block does not accept this problem\n"
      "  block: runs on cuda, and these tensors are on cpu; device \"simt\" runs it without a GPU");
}

}  // namespace
}  // namespace tensorcraft::op
