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

const simt::Instance* simt_instance(const jit::KernelKey& key) {
  return simt::find(instances_of(*key.rung), {key.types.data(), size_t(key.num_types)}, key.config);
}

void launch_on_simt(const jit::KernelKey& key, const LaunchConfig& config,
                    const std::byte* params) {
  simt::launch({.name = jit::readable_name(key),
                .grid = index3(config.grid),
                .block = index3(config.block),
                .cluster = index3(config.cluster),
                .shared_bytes = config.shared_bytes},
               simt_instance(key)->body, params);
}

}  // namespace

const jit::KernelKey* not_on_simt(const Plan& plan) {
  if (!simt_instance(plan.kernel)) return &plan.kernel;
  return plan.finish.rung && !simt_instance(plan.finish) ? &plan.finish : nullptr;
}

void require_simt_instance(Considered& row) {
  const jit::KernelKey* const missing = not_on_simt(*row.plan);
  if (!missing) return;
  row.reason = join("the SIMT device has no instance of this Config; ",
                    jit::readable_name(*missing), " is not compiled into this build");
  row.accepted = false;
  row.plan.reset();
}

void launch_on_simt(const Plan& plan) {
  if (const jit::KernelKey* const missing = not_on_simt(plan))
    fail(ErrorKind::unsupported, "the SIMT device has no instance of ",
         jit::readable_name(*missing));
  launch_on_simt(plan.kernel, plan.launch, plan.params);
  if (plan.finish.rung) launch_on_simt(plan.finish, plan.finish_launch, plan.params);
}

}  // namespace tensorcraft::op
