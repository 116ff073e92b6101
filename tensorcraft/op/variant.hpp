// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/launch.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/op/launch_plan.h"

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <type_traits>

namespace tensorcraft::op {

// A variant either runs the problem or says why it will not. Reasons are literals: nothing is
// formatted while choosing.
struct Verdict {
  // Empty where the variant accepts.
  std::string_view reason;
  bool accepted() const { return reason.empty(); }
};
// The two verdicts.
inline constexpr Verdict accept{};
constexpr Verdict decline(std::string_view reason) { return {reason}; }

// What a device row compiles and launches. Made from (problem, device) alone, so that the compile
// gate and `explain` see what the launch sees.
struct Plan {
  // The kernel, how it is started, and its only argument.
  static constexpr size_t kMaxParamsBytes = 1024;
  jit::KernelKey kernel;
  LaunchConfig launch;
  alignas(64) std::byte params[kMaxParamsBytes];
  size_t params_bytes = 0;
  // A second kernel with the same argument, where the first leaves it work; no rung: none. It
  // starts early where the first calls ptx::griddepcontrol_launch_dependents().
  jit::KernelKey finish;
  LaunchConfig finish_launch;
  // Memory of the launch alone, where it needs some: its address goes into the parameters at
  // workspace_at, and its first workspace_zeroed bytes are 0 when the kernel starts.
  size_t workspace_bytes = 0, workspace_zeroed = 0, workspace_at = 0;
  // A uint32_t that is 0 when the kernel starts, and that it leaves 0: where in the parameters its
  // address goes; -1: none.
  int counter_at = -1;
};

// Bytes between the fields of a struct become 0, so that equal structs are equal bytes. Where the
// compiler cannot, calls whose parameters have such bytes are planned anew each time.
template <class Struct>
void clear_padding([[maybe_unused]] Struct& value) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(&value);
#endif
#endif
}

// The same plan, of the second kernel alone.
inline Plan second_of(const Plan& plan) {
  Plan second = plan;
  second.kernel = plan.finish;
  second.launch = plan.finish_launch;
  second.finish = {};
  return second;
}

// kernel.threads is the launch bound, taken from launch.block.
template <class Params, class Config>
Plan make_plan(const jit::Rung& rung, std::initializer_list<DType> types, const Config& config,
               const LaunchConfig& launch, Params params, int min_blocks = 1) {
  static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= Plan::kMaxParamsBytes);
  Plan plan;
  plan.kernel.rung = &rung;
  for (const DType t : types) plan.kernel.types[size_t(plan.kernel.num_types++)] = t;
  plan.kernel.threads = int(launch.block.count());
  plan.kernel.min_blocks = min_blocks;
  jit::set_config(plan.kernel, config);
  plan.launch = launch;
  clear_padding(params);
  std::memcpy(plan.params, &params, sizeof(Params));
  plan.params_bytes = sizeof(Params);
  return plan;
}

// The same from what an operator's plan header chose.
template <class Params, class Config>
Plan make_plan(const jit::Rung& rung, std::initializer_list<DType> types,
               const LaunchPlan<Config>& launch, const Params& params) {
  return make_plan(rung, types, launch.config,
                   {.grid = {uint32_t(launch.blocks)},
                    .block = {uint32_t(launch.config.threads)},
                    .cluster = {uint32_t(launch.cluster)},
                    .shared_bytes = uint32_t(launch.shared_bytes)},
                   params, launch.min_blocks);
}

// One row of an operator's table. The table is best first within a device; a host row runs, a
// device row plans.
template <class Problem>
struct Variant {
  std::string_view name;  // by which a call may ask for it
  std::string_view idea;  // one line: what it does and why it is fast
  DeviceType device;      // where it runs
  Verdict (*accepts)(const Problem&, const DeviceInfo&);      // asked while choosing
  void (*run)(const Problem&) = nullptr;                      // of a host row
  Plan (*plan)(const Problem&, const DeviceInfo&) = nullptr;  // of a device row
  std::string_view alias = {};                                // another name the inventory asks for
  std::string_view reason = {};                               // why it may spill
  // Says why an accepted problem is left to the rows below unless the row is named; null: never.
  Verdict (*suits)(const Problem&, const DeviceInfo&) = nullptr;
};

// The work a problem is, whichever variant does it.
struct Cost {
  double bytes = 0;                // each input read once, each output written once
  double flops = 0;                // a multiplication and an addition are two
  bool may_round_to_tf32 = false;  // float32 products may run on tensor cores
};

}  // namespace tensorcraft::op
