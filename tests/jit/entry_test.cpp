// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/entry.hpp"

#include "tensorcraft/core/error.hpp"

#include <gtest/gtest.h>

namespace tensorcraft::jit {
namespace {

struct GemmConfig {
  int block_m, block_n, threads;
};

std::string gemm_config_text(const void* bytes) {
  const auto& config = *static_cast<const GemmConfig*>(bytes);
  return "tensorcraft::kernel::gemm::Config{.block_m = " + std::to_string(config.block_m) +
         ", .block_n = " + std::to_string(config.block_n) +
         ", .layout = tensorcraft::kernel::gemm::Layout::nn}";
}

const Rung kBlockTiled{"tensorcraft/ops/gemm/02_block_tiled.cuh",
                       "tensorcraft::kernel::gemm::block_tiled",
                       "tensorcraft::kernel::gemm::Params", gemm_config_text};
const Rung kPlain{"tensorcraft/ops/fill/00_naive.cuh", "tensorcraft::kernel::fill::naive",
                  "tensorcraft::kernel::fill::Params", nullptr};

KernelKey gemm_key() {
  KernelKey key{.rung = &kBlockTiled,
                .types = {DType::bfloat16, DType::float32},
                .num_types = 2,
                .threads = 256,
                .min_blocks = 2};
  set_config(key, GemmConfig{64, 128, 256});
  return key;
}

TEST(Entry, IsExactlyTheTextAroundARung) {
  EXPECT_EQ(entry_text(gemm_key(), "sm_90a"),
            R"(// Auto-generated GEMM kernel
// Generator: TensorCraft
// Target architecture: SM90a
// Precision: bfloat16, float32
// Configuration: block_m = 64, block_n = 128, layout = tensorcraft::kernel::gemm::Layout::nn
#include "tensorcraft/ops/gemm/02_block_tiled.cuh"

extern "C" __global__ void __launch_bounds__(256, 2)
    gemm_block_tiled(const __grid_constant__ tensorcraft::kernel::gemm::Params p) {
  asm volatile("griddepcontrol.wait; griddepcontrol.launch_dependents;" ::: "memory");
  tensorcraft::kernel::gemm::block_tiled<tensorcraft::bf16, float, tensorcraft::kernel::gemm::Config{.block_m = 64, .block_n = 128, .layout = tensorcraft::kernel::gemm::Layout::nn}>(p);
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
    fill_naive(const __grid_constant__ tensorcraft::kernel::fill::Params p) {
  tensorcraft::kernel::fill::naive(p);
}
)");
}

TEST(Entry, PutsTheConfigWhereAParameterDependsOnIt) {
  Rung rung = kBlockTiled;
  rung.params = "tensorcraft::ParamsOf<tensorcraft::kernel::gemm::Params, Config>";
  KernelKey key = gemm_key();
  key.rung = &rung;
  const std::string text = entry_text(key, "sm_90a");
  EXPECT_NE(text.find("(const __grid_constant__ tensorcraft::ParamsOf<tensorcraft::kernel::gemm::"
                      "Params, tensorcraft::kernel::gemm::Config{.block_m = 64, .block_n = 128, "
                      ".layout = tensorcraft::kernel::gemm::Layout::nn}> p) {"),
            text.npos)
      << text;
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
  const Rung unqualified{"h", "naive", "Params", nullptr};
  EXPECT_THROW(entry_name(unqualified), Error);
}

}  // namespace
}  // namespace tensorcraft::jit
