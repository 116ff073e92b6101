// SPDX-License-Identifier: Apache-2.0
// Faults and layouts of the matrix instructions; tests/wrappers/ compares their values.
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/ptx/ldmatrix.cuh"
#include "tensorcraft/device/ptx/mma.cuh"
#include "tensorcraft/device/ptx/stmatrix.cuh"
#include "tensorcraft/device/shared.cuh"
#include "tensorcraft/simt/launch.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace tensorcraft::simt {
namespace {

struct Rows {
  alignas(16) uint16_t at[32][8];
};

std::string fault_of(unsigned threads, Body body, const void* params = nullptr) {
  try {
    launch({.name = "k", .block = {threads}}, body, params);
  } catch (const Error& e) {
    return e.what();
  }
  return "no fault";
}

TEST(SimtMatrix, LoadsNeighboursOfARowAndTransposedOfAColumn) {
  EXPECT_EQ(fault_of(32,
                     [](const void*) {
                       auto& rows = tensorcraft::static_shared<Rows>();
                       const unsigned lane = threadIdx.x;
                       for (unsigned i = 0; i < 8; ++i) rows.at[lane][i] = uint16_t(lane * 8 + i);
                       __syncwarp();
                       uint32_t plain[4], across[2];
                       ptx::ldmatrix_x4(plain, rows.at[lane]);
                       ptx::ldmatrix_x2_trans(across, rows.at[lane]);
                       const unsigned first = lane / 4 * 8 + lane % 4 * 2;
                       EXPECT_EQ(plain[3], (3 * 64 + first) | (3 * 64 + first + 1) << 16);
                       const unsigned top = 64 + lane % 4 * 16 + lane / 4;
                       EXPECT_EQ(across[1], top | (top + 8) << 16);
                     }),
            "no fault");
}

TEST(SimtMatrix, ReportsARowThatIsNotAligned) {
  const std::string fault = fault_of(32, [](const void*) {
    auto& rows = tensorcraft::static_shared<Rows>();
    for (uint16_t& x : rows.at[threadIdx.x]) x = 0;
    __syncwarp();
    uint32_t to[4];
    ptx::ldmatrix_x4(to, &rows.at[threadIdx.x][threadIdx.x == 7 ? 4 : 0]);
  });
  EXPECT_NE(fault.find("thread (7, 0, 0): ldmatrix.x4: the row of lane 7 is not at a multiple of"),
            std::string::npos)
      << fault;
}

TEST(SimtMatrix, ReportsARowOutsideSharedMemory) {
  const std::string fault = fault_of(32, [](const void*) {
    auto& rows = tensorcraft::static_shared<Rows>();
    const uint32_t from[2] = {};
    // x2 reads 16 rows: those of lanes 16 and up do not count.
    ptx::stmatrix_x2(rows.at[threadIdx.x < 16 ? threadIdx.x : 99], from);
    ptx::stmatrix_x2(rows.at[threadIdx.x == 3 ? 32 : threadIdx.x], from);
  });
  EXPECT_NE(fault.find("stmatrix.x2: the row of lane 3 is outside"), std::string::npos) << fault;
}

TEST(SimtMatrix, ReportsAWarpThatIsNotWhole) {
  const std::string fault = fault_of(40, [](const void*) {
    float c[4] = {};
    const uint32_t a[4] = {}, b[2] = {};
    ptx::mma_m16n8k16_f32_f16_f16_f32(c, a, b, c);
  });
  EXPECT_NE(fault.find("mma.sync.m16n8k16.f16 needs its whole warp"), std::string::npos) << fault;
}

// A gemm of 256^3 has 8,192 such instructions and must take less than 2 s.
TEST(SimtMatrix, AnInstructionTakesFarLessThan200Microseconds) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(fault_of(32,
                     [](const void*) {
                       float c[4] = {};
                       const uint32_t a[4] = {}, b[2] = {};
                       for (int i = 0; i < 1000; ++i) ptx::mma_m16n8k16_f32_f16_f16_f32(c, a, b, c);
                     }),
            "no fault");
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  RecordProperty("microseconds", std::to_string(taken.count() * 1e3));
  EXPECT_LT(taken.count(), 0.2);
}

}  // namespace
}  // namespace tensorcraft::simt
