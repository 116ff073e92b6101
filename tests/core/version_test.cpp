// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/version.hpp"

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

TEST(Version, IsTheOneOfTheProject) { EXPECT_EQ(version(), TC_PROJECT_VERSION); }

}  // namespace
}  // namespace tensorcraft
