// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tests/support/cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

// The blocks of what accepts, for every case and architecture.
namespace tensorcraft::test {
namespace {

const char* const kArchitectures[] = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120"};

// Blocks of more than 256 threads leave fewer of them a multiprocessor, so each has a reason.
const std::string kInRegisters = "a row of up to 16,384 elements stays in the registers of a block";
const std::string kPersistent = "a row takes all threads of a multiprocessor that holds its places";
const std::string kProducer = "a warpgroup copies beside two or three that multiply one tile";
const std::string kFilters = "a row is read by one block, which keeps as much in flight as it can";
const std::string kQuota = "few blocks leave multiprocessors to others, so each moves much at once";
const std::map<std::string, std::string> kAbove256 = {
    {"softmax in_registers", kInRegisters},
    {"log_softmax in_registers", kInRegisters},
    {"logsumexp in_registers", kInRegisters},
    {"layer_norm in_registers", kInRegisters},
    {"rms_norm in_registers", kInRegisters},
    {"attention persistent", kProducer},
    {"paged_attention persistent", kProducer},
    {"paged_attention split_wgmma", kProducer},
    {"paged_attention latent_wgmma", kProducer},
    {"mqa_logits wgmma", "a warp copies beside two warpgroups that multiply"},
    {"attention warp_specialized", kProducer},
    {"attention wgmma", "three warpgroups have 64 queries each of one tile of keys"},
    {"conv2d implicit_wgmma", kProducer},
    {"conv2d winograd", "36 elements of a tile of a 5 x 5 window have 8 threads each"},
    {"conv2d implicit_wgmma_tf32", kProducer},
    {"csr_transpose tiles", "a block that sorts more at once has longer runs of a column"},
    {"csr_transpose buckets", "a block that sorts more at once has longer runs of a bucket"},
    {"gemm persistent", kProducer},
    {"grouped_gemm persistent", kProducer},
    {"grouped_gemm persistent_tf32", kProducer},
    {"gemm persistent_tf32", kProducer},
    {"gemm packed_tf32", kProducer},
    {"gemm split_k", kProducer},
    {"gemm warp_specialized", kProducer},
    {"l2_normalize cluster", "a part of a long row stays in the registers of a block"},
    {"sample block", kFilters},
    {"sample split", kFilters},
    {"softmax persistent", kPersistent},
    {"log_softmax persistent", kPersistent},
    {"layer_norm persistent", kPersistent},
    {"rms_norm persistent", kPersistent},
    {"transfer_hicache_one_layer vectorized", kQuota},
    {"transfer_hicache_all_layer vectorized", kQuota},
    {"quantize in_registers", "a token of more than 16,384 elements stays in registers"},
    {"cross_entropy online", "fewer threads would wait for the end of a long row more often"},
    {"cross_entropy naive", "one block adds the losses of all rows, 16 of each thread at once"},
};

// The driver refuses a grid that is not all clusters.
TEST(Blocks, HaveOneDimensionWholeClustersAndAtMost256ThreadsOrAReason) {
  std::set<std::string> above;
  for (const char* arch : kArchitectures) {
    const DeviceInfo device = device_info_of_arch(arch);
    for (const Case& c : all_cases())
      for (const auto& row : explain_case(c, device).variants) {
        if (!row.accepted || !row.plan) continue;
        for (const op::Step& step : row.plan->steps()) {
          const std::string name = join(c.op->description().name, ' ', row.variant.name);
          EXPECT_EQ(step.launch.block.y * step.launch.block.z, 1u) << name;  // 32 x 32 for one
          EXPECT_EQ(step.launch.grid.x % step.launch.cluster.x, 0u)
              << arch << ' ' << c.name << ' ' << row.variant.name;
          if (step.launch.block.x > 256) above.insert(name);
        }
      }
  }
  for (const std::string& name : above) EXPECT_TRUE(kAbove256.contains(name)) << name;
  for (const auto& [name, reason] : kAbove256) EXPECT_TRUE(above.contains(name)) << name;
}

// Conformance on a GPU fails at a case that no variant takes; here it is seen without one.
TEST(Blocks, OfEachCaseOfConformanceAreThoseOfSomeVariantOnHopper) {
  const DeviceInfo hopper = device_info_of_arch("sm_90a");
  for (const Case& c : all_cases()) {
    if (!c.has_tag("conformance")) continue;
    const auto variants = explain_case(c, hopper).variants;
    EXPECT_TRUE(std::ranges::any_of(variants, &op::Considered::accepted)) << c.name;
  }
}

TEST(Blocks, AreChosenForNoGpuBefore80) {
  for (const char* arch : {"sm_60", "sm_70", "sm_75"})
    EXPECT_THROW(device_info_of_arch(arch), Error) << arch;
}

}  // namespace
}  // namespace tensorcraft::test
