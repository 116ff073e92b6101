// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/simt.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/with_stack.hpp"
#include "tensorcraft/runtime/dispatch/dispatch.hpp"
#include "tensorcraft/simt/instance.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace tensorcraft::op {
namespace {

Index3 index3(const Dim3& d) { return {d.x, d.y, d.z}; }

simt::InstanceList find_instances(const Step& step) {
  const jit::Rung& rung = *step.kernel.rung;
  simt::InstanceList all;
  if (!step.instances) return all;
  for (const simt::RungInstances& of : step.instances())
    if (of.rung == rung.name) all = simt::concat(std::move(all), of.instances);
  return all;
}

}  // namespace

const simt::InstanceList& simt_instances(const Step& step) {
  // Leaked: operators may run until the process ends.
  static auto* mutex = new ForkSafeMutex;
  static auto* lists = new std::map<const jit::Rung*, simt::InstanceList>;
  const std::lock_guard lock(*mutex);
  const auto known = lists->find(step.kernel.rung);
  if (known != lists->end()) return known->second;
  // Each list is written out in a frame, of which the largest are tens of KiB.
  auto found = with_stack("simt", kAmpleStack, [&] { return find_instances(step); });
  return lists->emplace(step.kernel.rung, std::move(found)).first->second;
}

const simt::Instance* simt_instance(const Step& step) {
  const jit::KernelKey& key = step.kernel;
  return simt::find(simt_instances(step), {key.types.data(), size_t(key.num_types)}, key.config);
}

const Step* not_on_simt(const Plan& plan) {
  for (const Step& step : plan.steps())
    if (!simt_instance(step)) return &step;
  return nullptr;
}

void require_simt_instance(Considered& variant) {
  const Step* const missing = not_on_simt(*variant.plan);
  if (!missing) return;
  variant.reason =
      join("the SIMT device has no instance of this Config, ", jit::readable_name(missing->kernel),
           ": it has those of the tests' cases; take another shape or dtype, another "
           "variant, or a GPU");
  variant.accepted = false;
  variant.plan.reset();
}

void launch_on_simt(const Plan& plan) {
  if (const Step* const missing = not_on_simt(plan))
    fail(ErrorKind::unsupported, "the SIMT device has no instance of ",
         jit::readable_name(missing->kernel));
  for (const Step& step : plan.steps()) {
    const std::string name = jit::readable_name(step.kernel);
    const LaunchConfig& launch = step.launch;
    const bool is_watched = dispatch::is_watching();
    if (is_watched) dispatch::before_simt_launch(name, launch.grid, launch.block);
    simt::launch({.name = name,
                  .grid = index3(launch.grid),
                  .block = index3(launch.block),
                  .cluster = index3(launch.cluster),
                  .shared_bytes = launch.shared_bytes},
                 simt_instance(step)->body, plan.params(step));
    if (is_watched) dispatch::after_simt_launch(name, launch.grid, launch.block);
  }
}

}  // namespace tensorcraft::op
