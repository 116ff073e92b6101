// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tests/support/cases.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

// The compile gate: every kernel that a case would launch goes through NVRTC, and one of each rung
// through nvcc where there is one. No GPU is needed.
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

enum class Keep { all, one_a_dtype, one_a_rung };

std::string identity(const jit::KernelKey& key, Keep keep) {
  std::string id(key.rung->function);
  if (keep == Keep::one_a_rung) return id;
  id.append(reinterpret_cast<const char*>(&key.types), sizeof(key.types));
  id += join("/", key.num_types, "/");
  if (keep == Keep::one_a_dtype) return id;
  return id + join(key.threads, "/", key.min_blocks, "/") +
         std::string(reinterpret_cast<const char*>(key.config.data()), key.config.size());
}

// The distinct kernels of all cases.
std::vector<Kernel> kernels(const DeviceInfo& device, Keep keep) {
  static const auto cases = all_cases();
  std::vector<Kernel> found;
  std::set<std::string> seen;
  for (const Case& c : cases) {
    if (c.has_tag("bench") && !c.has_tag("conformance")) continue;  // large, and no new kernel
    const CaseRun run(c, Device::cpu());
    for (const auto& row : explain_on(c, run, device).variants) {
      if (!row.accepted || !row.plan) continue;
      const jit::KernelKey& key = row.plan->kernel;
      if (!seen.insert(identity(key, keep)).second) continue;
      found.push_back({key,
                       join(c.op->description().name, " ", row.variant.name, " (", c.name, ")"),
                       !row.variant.reason.empty()});
    }
  }
  return found;
}

// `compile` returns what is wrong with a kernel, or nothing.
void compile_all(std::string_view arch, Keep keep,
                 const std::function<std::string(const Kernel&)>& compile) {
  const auto all = kernels(device_info_of_arch(arch), keep);
  ASSERT_FALSE(all.empty());
  std::atomic<size_t> next{0};
  std::mutex mutex;
  const auto work = [&] {
    for (size_t i = next++; i < all.size(); i = next++) {
      std::string problem;
      try {
        problem = compile(all[i]);
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

void compile_with_nvrtc(std::string_view arch, Keep keep) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  compile_all(arch, keep, [arch](const Kernel& kernel) -> std::string {
    const auto report = jit::compile(kernel.key, arch);
    if (report.spill_bytes == 0 || kernel.may_spill) return {};
    return join("spills ", report.spill_bytes, " bytes");
  });
}

TEST(CompileGate, EveryKernelOfTheCasesBuildsForHopper) { compile_with_nvrtc("sm_90a", Keep::all); }

// The text NVRTC gets, as a file for nvcc.
TEST(CompileGate, EveryRungBuildsWithNvcc) {
  const std::string nvcc = TENSORCRAFT_NVCC;
  if (nvcc.empty()) GTEST_SKIP() << "there is no nvcc";
  std::string folder = (std::filesystem::temp_directory_path() / "compile_gate_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  compile_all("sm_90a", Keep::one_a_rung, [&](const Kernel& kernel) -> std::string {
    const std::string file = folder + "/" + jit::entry_name(*kernel.key.rung);
    std::ofstream(file + ".cu") << jit::entry_text(kernel.key, "sm_90a");
    const std::string command =
        join('"', nvcc, "\" -cubin -std=c++20 --gpu-architecture=sm_90a -I\"", TENSORCRAFT_SOURCE,
             "\" -o ", file, ".cubin ", file, ".cu > ", file, ".log 2>&1");
    if (std::system(command.c_str()) == 0) return {};
    return join(std::ifstream(file + ".log").rdbuf());
  });
  std::filesystem::remove_all(folder);
}

class CompileGateOthers : public ::testing::TestWithParam<const char*> {};
TEST_P(CompileGateOthers, OneKernelOfEachVariantAndDtypeBuilds) {
  compile_with_nvrtc(GetParam(), Keep::one_a_dtype);
}
INSTANTIATE_TEST_SUITE_P(Architectures, CompileGateOthers,
                         ::testing::Values("sm_80", "sm_86", "sm_89", "sm_100a", "sm_120"));

}  // namespace
}  // namespace tensorcraft::testing
