// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/shared.cuh"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/simt/launch.hpp"
#include "tensorcraft/simt/shadow.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tensorcraft::simt {
namespace {

using tensorcraft::dynamic_shared;
using tensorcraft::static_shared;  // what a kernel calls, not its hook

struct Tile {
  float values[64];
};
struct Other {
  alignas(128) int values[8];
};
struct TooLarge {
  char bytes[48 * 1024 + 1];
};

std::string fault_of(size_t shared_bytes, Body body) {
  try {
    launch({.name = "k", .grid = {3}, .block = {32}, .shared_bytes = shared_bytes}, body, nullptr);
  } catch (const Error& e) {
    return e.what();
  }
  return "no fault";
}

TEST(SimtShared, EachBlockStartsWithNansAndHasItsOwn) {
  EXPECT_EQ(fault_of(sizeof(Tile),
                     [](const void*) {
                       auto& fixed = static_shared<Tile>();
                       auto& dynamic = dynamic_shared<Tile>();
                       if constexpr (!kRaceBuild) {  // which reports such reads
                         EXPECT_NE(fixed.values[threadIdx.x], fixed.values[threadIdx.x]);
                         EXPECT_NE(dynamic.values[63], dynamic.values[63]);
                       }
                       EXPECT_EQ(&fixed, &static_shared<Tile>());
                       EXPECT_NE(static_cast<void*>(&fixed),
                                 static_cast<void*>(&static_shared<Other>()));
                       EXPECT_EQ(reinterpret_cast<uintptr_t>(&static_shared<Other>()) % 128, 0u);
                       EXPECT_EQ(reinterpret_cast<uintptr_t>(&dynamic) % 1024, 0u);
                       fixed.values[threadIdx.x] = 1;
                       __syncthreads();
                       if (threadIdx.x == 0) dynamic.values[63] = 2;
                     }),
            "no fault");
}

TEST(SimtShared, ReportsMoreThanTheLaunchGives) {
  EXPECT_NE(
      fault_of(sizeof(Tile) - 1, [](const void*) { dynamic_shared<Tile>(); })
          .find("the kernel lays out 256 bytes of dynamic shared memory, the launch gives 255"),
      std::string::npos);
  EXPECT_NE(fault_of(0, [](const void*) { static_shared<TooLarge>(); })
                .find("static shared memory of 49153 bytes is beyond the limit of 49152"),
            std::string::npos);
}

}  // namespace
}  // namespace tensorcraft::simt
