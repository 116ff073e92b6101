// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/simt.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/simt/instance.hpp"

#include <map>
#include <mutex>

namespace tensorcraft::op {
namespace {

static_assert(simt::kMaxTypes == jit::kMaxTypes && simt::kMaxConfigBytes == jit::kMaxConfigBytes);

const simt::InstanceList& instances_of(const jit::Rung& rung) {
  // Leaked: operators may run until the process ends.
  static auto* mutex = new std::mutex;
  static auto* lists = new std::map<const jit::Rung*, simt::InstanceList>;
  const std::lock_guard lock(*mutex);
  const auto [at, is_new] = lists->try_emplace(&rung);
  if (is_new && rung.simt_instances) at->second = rung.simt_instances();
  return at->second;
}

Index3 index3(const Dim3& d) { return {d.x, d.y, d.z}; }

}  // namespace

const simt::Instance* simt_instance(const Plan& plan) {
  const jit::KernelKey& key = plan.kernel;
  return simt::find(instances_of(*key.rung), {key.types.data(), size_t(key.num_types)}, key.config);
}

void require_simt_instance(Considered& row) {
  if (simt_instance(*row.plan)) return;
  row.reason = join("the SIMT device has no instance of this Config; ",
                    jit::readable_name(row.plan->kernel), " is not compiled into this build");
  row.accepted = false;
  row.plan.reset();
}

void launch_on_simt(const Plan& plan) {
  const simt::Instance* instance = simt_instance(plan);
  const std::string name = jit::readable_name(plan.kernel);
  if (!instance) fail(ErrorKind::unsupported, "the SIMT device has no instance of ", name);
  const LaunchConfig& config = plan.launch;
  simt::launch({.name = name,
                .grid = index3(config.grid),
                .block = index3(config.block),
                .cluster = index3(config.cluster),
                .shared_bytes = config.shared_bytes},
               instance->body, plan.params);
}

}  // namespace tensorcraft::op
