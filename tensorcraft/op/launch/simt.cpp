// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/launch/simt.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/jit/host_compiler.hpp"
#include "tensorcraft/op/explanation.hpp"
#include "tensorcraft/runtime/dispatch/dispatch.hpp"
#include "tensorcraft/simt/instance.hpp"

#include <array>
#include <memory>
#include <span>

namespace tensorcraft::op {
namespace {

Index3 index3(const Dim3& d) { return {d.x, d.y, d.z}; }

// Compiled ahead, or loaded as long as the object.
struct Kernel {
  simt::Body body = nullptr;
  std::shared_ptr<const jit::HostKernel> loaded;
};

Kernel kernel_of(const Step& step) {
  if (const simt::Instance* const one = simt_instance(step.kernel)) return {one->body, nullptr};
  auto loaded = jit::host_kernel(step.kernel);
  return {loaded->body, loaded};
}

}  // namespace

const simt::Instance* simt_instance(const jit::KernelKey& kernel) {
  const jit::Rung& rung = *kernel.rung;
  const std::span types(kernel.types.data(), size_t(kernel.num_types));
  const ConfigBytes config = rung.general ? rung.general(kernel.config) : kernel.config;
  return simt::find_instance({rung.function, types, config});
}

bool is_held(const Step& step, const DeviceInfo& device) {
  return device.device.type == DeviceType::simt && simt_instance(step.kernel);
}

const Step* not_on_simt(const Plan& plan) {
  for (const Step& step : plan.steps())
    if (!simt_instance(step.kernel)) return jit::host_compiler_problem().empty() ? nullptr : &step;
  return nullptr;
}

void require_simt_instance(Considered& variant) {
  const Step* const missing = not_on_simt(*variant.plan);
  if (!missing) return;
  variant.reason = join("the emulator does not hold ", jit::readable_name(missing->kernel), ": ",
                        jit::host_compiler_problem(), ", or take another variant or a GPU");
  variant.accepted = false;
  variant.plan.reset();
}

void launch_on_simt(const Plan& plan) {
  std::array<Kernel, Plan::kMaxSteps> kernels;  // all are there before one starts
  const auto steps = plan.steps();
  for (size_t i = 0; i < steps.size(); ++i) kernels[i] = kernel_of(steps[i]);
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string name = jit::readable_name(steps[i].kernel);
    const LaunchConfig& launch = steps[i].launch;
    const bool is_watched = dispatch::is_watching();
    if (is_watched) dispatch::before_simt_launch(name, launch.grid, launch.block);
    simt::launch({.name = name,
                  .grid = index3(launch.grid),
                  .block = index3(launch.block),
                  .cluster = index3(launch.cluster),
                  .shared_bytes = launch.shared_bytes},
                 kernels[i].body, plan.params(steps[i]));
    if (is_watched) dispatch::after_simt_launch(name, launch.grid, launch.block);
  }
}

}  // namespace tensorcraft::op
