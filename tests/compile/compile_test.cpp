// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tests/support/cases.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>

// The compile gate: every kernel that a case would launch goes through NVRTC. No GPU is needed.
namespace tensorcraft::testing {
namespace {

// The same tensors as if they lay on a GPU; explain() reads no memory.
TensorView on_gpu(const TensorView& t) {
  return {t.data(), t.dtype(), t.shape(), t.strides(), Device::cuda(0)};
}

op::Explanation explain_on(const Case& c, const CaseRun& run, const DeviceInfo& device) {
  const op::Arguments host = run.arguments({});
  std::vector<TensorView> inputs, outputs;
  for (const auto& t : host.inputs) inputs.push_back(on_gpu(t));
  for (const auto& t : run.outputs()) outputs.push_back(on_gpu(t));
  std::vector<op::Value> options(host.options.begin(), host.options.end());
  for (auto& v : options)
    if (const auto* t = std::get_if<TensorView>(&v)) v = on_gpu(*t);
  return c.op->explain(outputs, {inputs, options, {}, std::nullopt}, device);
}

struct Kernel {
  jit::KernelKey key;
  std::string variant;
  bool may_spill;
};

// Every distinct kernel of all cases; `first_of_dtype` keeps one a variant and dtype.
std::vector<Kernel> kernels(const DeviceInfo& device, bool first_of_dtype) {
  static const auto cases = all_cases();
  std::vector<Kernel> found;
  std::set<std::string> seen;
  for (const Case& c : cases) {
    if (c.has_tag("bench") && !c.has_tag("conformance")) continue;  // large, and no new kernel
    const CaseRun run(c, Device::cpu());
    for (const auto& row : explain_on(c, run, device).variants) {
      if (!row.accepted || !row.plan) continue;
      const jit::KernelKey& key = row.plan->kernel;
      std::string id(reinterpret_cast<const char*>(&key.types), sizeof(key.types));
      id += join(key.rung->function, "/", key.num_types, "/");
      if (!first_of_dtype)
        id += join(key.threads, "/", key.min_blocks, "/") +
              std::string(reinterpret_cast<const char*>(key.config.data()), key.config.size());
      if (!seen.insert(id).second) continue;
      found.push_back({key,
                       join(c.op->description().name, " ", row.variant.name, " (", c.name, ")"),
                       !row.variant.reason.empty()});
    }
  }
  return found;
}

void compile_all(std::string_view arch, bool first_of_dtype) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const auto all = kernels(device_info_of_arch(arch), first_of_dtype);
  ASSERT_FALSE(all.empty());
  std::atomic<size_t> next{0};
  std::mutex mutex;
  const auto work = [&] {
    for (size_t i = next++; i < all.size(); i = next++) {
      std::string problem;
      try {
        const auto report = jit::compile(all[i].key, arch);
        if (report.spill_bytes && !all[i].may_spill)
          problem = join("spills ", report.spill_bytes, " bytes");
      } catch (const std::exception& e) {
        problem = e.what();
      }
      const std::lock_guard lock(mutex);
      if (!problem.empty()) ADD_FAILURE() << all[i].variant << " for " << arch << ": " << problem;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back(work);
  for (auto& t : threads) t.join();
  std::cout << "compiled " << all.size() << " kernels for " << arch << '\n';
}

TEST(CompileGate, EveryKernelOfTheCasesBuildsForHopper) { compile_all("sm_90a", false); }

class CompileGateOthers : public ::testing::TestWithParam<const char*> {};
TEST_P(CompileGateOthers, OneKernelOfEachVariantAndDtypeBuilds) { compile_all(GetParam(), true); }
INSTANTIATE_TEST_SUITE_P(Architectures, CompileGateOthers,
                         ::testing::Values("sm_80", "sm_86", "sm_89", "sm_100a", "sm_120"));

}  // namespace
}  // namespace tensorcraft::testing
