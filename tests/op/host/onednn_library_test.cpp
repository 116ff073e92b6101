// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/onednn.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::host {
namespace {

TEST(OneDnnLibrary, IsThereOrSaysWhyNot) {
  EXPECT_EQ(onednn::available(), onednn::unavailable_reason().empty());
  EXPECT_EQ(onednn::available(), !onednn::version().empty());
}

TEST(OneDnnLibrary, IsOpenedOnce) { EXPECT_EQ(onednn::version().data(), onednn::version().data()); }

}  // namespace
}  // namespace tensorcraft::host
