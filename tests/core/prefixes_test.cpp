// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/prefixes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace tensorcraft {
namespace {

namespace fs = std::filesystem;

TEST(Prefixes, KnowTheFolderOfTheLibrary) {
  const auto entries = fs::directory_iterator(own_folder());
  EXPECT_TRUE(std::any_of(begin(entries), end(entries), [](const auto& e) {
    return e.path().filename().string().starts_with("libtensorcraft.so");
  }));
}

TEST(Prefixes, KeepAnAddedPrefixOnce) {
  add_prefix("/nowhere/at/all");
  add_prefix("/nowhere/at/all");
  const auto all = prefixes();
  EXPECT_EQ(std::count(all.begin(), all.end(), fs::path("/nowhere/at/all")), 1);
}

TEST(Prefixes, FindTheSitePackagesOfAPrefix) {
  const fs::path prefix = fs::path(::testing::TempDir()) / "tc_prefix";
  fs::create_directories(prefix / "lib" / "python3.99" / "site-packages");
  EXPECT_EQ(site_packages(prefix),
            std::vector<fs::path>{prefix / "lib" / "python3.99" / "site-packages"});
  EXPECT_TRUE(site_packages(prefix / "missing").empty());
  fs::remove_all(prefix);
}

}  // namespace
}  // namespace tensorcraft
