// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/entry.hpp"

#include "tensorcraft/core/error.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::jit {
namespace {

struct GemmConfig {
  int block_m, block_n, layout;
};

constexpr std::string_view kLayouts[] = {"nn", "nt"};
constexpr ConfigField kGemmFields[] = {{"block_m"}, {"block_n"}, {"layout", kLayouts}};

const Rung kBlockTiled{"gemm",
                       "block_tiled",
                       "tensorcraft/ops/gemm/02_block_tiled.cuh",
                       "tensorcraft::kernel::gemm::BlockTiled::run",
                       "tensorcraft::kernel::gemm::Config",
                       kGemmFields};
const Rung kPlain{"fill", "naive", "tensorcraft/ops/fill/00_naive.cuh",
                  "tensorcraft::kernel::fill::Naive::run"};

KernelKey gemm_key() {
  KernelKey key{.rung = &kBlockTiled,
                .types = {DType::bfloat16, DType::float32},
                .num_types = 2,
                .threads = 256,
                .min_blocks = 2};
  key.config = config_bytes(GemmConfig{64, 128, 0});
  return key;
}

TEST(Entry, IsExactlyTheTextAroundARung) {
  EXPECT_EQ(entry_text(gemm_key(), "sm_90a"),
            R"(// Auto-generated GEMM kernel
// Generator: TensorCraft
// Target architecture: SM90a
// Precision: bfloat16, float32
// Configuration: block_m = 64, block_n = 128, layout = nn
#include "tensorcraft/ops/gemm/02_block_tiled.cuh"

constexpr auto kConfig = tensorcraft::kernel::gemm::Config{.block_m = 64, .block_n = 128, .layout = decltype(tensorcraft::kernel::gemm::Config::layout)::nn};
extern "C" __global__ void __launch_bounds__(256, 2)
    gemm_block_tiled(const __grid_constant__ tensorcraft::KernelParams<decltype(&tensorcraft::kernel::gemm::BlockTiled::run<tensorcraft::bf16, float, kConfig>)> p) {
  asm volatile("griddepcontrol.wait; griddepcontrol.launch_dependents;" ::: "memory");
  tensorcraft::kernel::gemm::BlockTiled::run<tensorcraft::bf16, float, kConfig>(p);
}
)");
}

TEST(Entry, LeavesOutWhatARungDoesNotHave) {
  const KernelKey key{.rung = &kPlain, .threads = 128};
  EXPECT_EQ(entry_text(key, "sm_80"),
            R"(// Auto-generated FILL kernel
// Generator: TensorCraft
// Target architecture: SM80
// Precision: none
// Configuration: none
#include "tensorcraft/ops/fill/00_naive.cuh"

extern "C" __global__ void __launch_bounds__(128, 1)
    fill_naive(const __grid_constant__ tensorcraft::KernelParams<decltype(&tensorcraft::kernel::fill::Naive::run)> p) {
  tensorcraft::kernel::fill::Naive::run(p);
}
)");
}

TEST(Entry, ShowsAConfigByItsNames) {
  EXPECT_EQ(config_fields(kBlockTiled, config_bytes(GemmConfig{64, 8, 1})),
            "block_m = 64, block_n = 8, layout = nt");
  EXPECT_THROW(config_fields(kBlockTiled, config_bytes(GemmConfig{64, 8, 2})), Error);
}

TEST(Entry, SpellsEveryDtypeForTheDevice) {
  const char* const expected[kNumDTypes] = {
      "float",  "tensorcraft::f16", "tensorcraft::bf16", "tensorcraft::e4m3", "tensorcraft::e5m2",
      "int8_t", "int16_t",          "int32_t",           "int64_t",           "uint8_t",
      "bool"};
  for (int i = 0; i < kNumDTypes; ++i) EXPECT_EQ(device_type(DType(i)), expected[i]);
}

TEST(Entry, NamesAKernelForPeople) {
  EXPECT_EQ(readable_name(gemm_key()), "gemm_block_tiled_bfloat16_float32_bm64_bn128_lnn");
  EXPECT_EQ(readable_name({.rung = &kPlain, .threads = 128}), "fill_naive");
}

TEST(Entry, RefusesAKeyThatIsNotComplete) {
  KernelKey no_threads = gemm_key(), too_many_types = gemm_key(), no_rung = gemm_key();
  no_threads.threads = 0;
  too_many_types.num_types = 5;
  no_rung.rung = nullptr;
  for (const KernelKey& key : {no_threads, too_many_types, no_rung}) {
    EXPECT_THROW(entry_text(key, "sm_90a"), Error);
  }
}

}  // namespace
}  // namespace tensorcraft::jit
