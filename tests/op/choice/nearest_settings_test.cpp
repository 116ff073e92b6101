// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/choice/nearest_settings.hpp"

#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tensorcraft::op {
namespace {

using Texts = std::vector<std::string>;
using test::expect_error;

TEST(NearestSettings, HaveWhatTheCallerNamesAndTheNearestIsFirst) {
  const Texts known{"tile_m=64, tile_n=64", "tile_m=128, tile_n=64", "tile_m=96, tile_n=32",
                    "tile_m=128, tile_n=256"};
  EXPECT_EQ(nearest_settings("tile_m=100", known), (Texts{"tile_m=96", "tile_m=128", "tile_m=64"}));
  EXPECT_EQ(nearest_settings("tile_n=250, tile_m=100", known),
            (Texts{"tile_n=256, tile_m=128", "tile_n=64, tile_m=128", "tile_n=64, tile_m=64",
                   "tile_n=32, tile_m=96"}));
}

TEST(NearestSettings, AWordIsEqualOrNotAndASettingThatIsMissingIsFarthest) {
  const Texts known{"stages=4", "stages=2, schedule=together", "stages=2, schedule=ping_pong", ""};
  EXPECT_EQ(nearest_settings("stages=4, schedule=ping_pong", known),
            (Texts{"stages=2, schedule=ping_pong", "stages=2, schedule=together", "stages=4"}));
  EXPECT_TRUE(nearest_settings("split=3", known).empty());
}

TEST(NearestSettings, TheErrorHasTheWordsOfTheCaller) {
  const Texts two{"tile_m=96", "tile_m=128"};
  expect_error(
      ErrorKind::unsupported,
      [&] { refuse_settings("gemm", "config", "tile_m=100", "", "", Device::simt(), two); },
      "gemm: config tile_m=100: no variant has it for this call on simt; the nearest that are "
      "accepted: tile_m=96; tile_m=128");
  expect_error(
      ErrorKind::unsupported,
      [&] { refuse_settings("gemm", "config", "split=3", "tma", "too many", Device::simt(), {}); },
      "gemm: config split=3: variant tma does not accept it: too many; leave it out");
}

}  // namespace
}  // namespace tensorcraft::op
