// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/launch.hpp"
#include "tensorcraft/jit/entry.hpp"
#include "tensorcraft/op/choice/rung.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tensorcraft::op {

// The numbers of a device that choices look at.
Gpu gpu_of(const DeviceInfo& device);

// A tensor map in a step's argument whose tensor lies in the plan's workspace.
struct WorkspaceMap {
  int32_t at = -1;     // of the map in the argument; -1: there is none
  int64_t offset = 0;  // bytes of the workspace in front of the tensor
};

// One kernel of a plan: what is compiled, how it is started, and its only argument.
struct Step {
  jit::KernelKey kernel;
  LaunchConfig launch;
  uint32_t params_at = 0, params_bytes = 0;  // its argument among the bytes of the plan
  // Where in its argument the address of the plan's workspace goes, and that of a uint32_t that is
  // 0 when the kernel starts and that it leaves 0. -1: it has none.
  int32_t workspace_at = -1, counter_at = -1;
  std::array<WorkspaceMap, 2> workspace_maps{};
};

// Lists what a variant compiles and launches for a call: up to four kernels, in their order. Made
// from (problem, device) alone, so that the compile gate and `explain` see what the launch sees.
class Plan {
 public:
  static constexpr size_t kMaxSteps = 4, kMaxBytes = 4096;

  Plan() = default;
  Plan(const Plan& other) { *this = other; }
  Plan& operator=(const Plan& other);

  std::span<Step> steps() { return {steps_.data(), num_steps_}; }
  std::span<const Step> steps() const { return {steps_.data(), num_steps_}; }
  Step& first() { return steps_[0]; }
  const Step& first() const { return steps_[0]; }
  // The step that the variant's choice gave; others prepare for it or go on after it.
  size_t main_index() const { return main_; }
  Step& main() { return steps_[main_]; }
  const Step& main() const { return steps_[main_]; }
  // Adds a step with the argument of the step before, which is the first that has one.
  Step& add(const Step& step);
  // Adds a step with an argument of its own.
  template <class Params>
  Step& add(const Step& step, const Params& params);
  // Adds such a step in front of the main step.
  template <class Params>
  Step& add_preparation(const Step& step, const Params& params);
  // Replaces the argument of step i by one that begins with the same bytes or is its own.
  template <class Params>
  void set_params(size_t i, Params params);
  const std::byte* params(const Step& step) const { return bytes_ + step.params_at; }
  std::byte* params(const Step& step) { return bytes_ + step.params_at; }
  template <class Params>
  const Params& params_as(const Step& step) const {
    return *reinterpret_cast<const Params*>(params(step));
  }
  void set_address(const Step& step, int at, const void* address);
  // The arguments of all steps.
  std::span<std::byte> bytes() { return {bytes_, num_bytes_}; }
  std::span<const std::byte> bytes() const { return {bytes_, num_bytes_}; }

  // Memory of the launch alone, if it needs some; its first bytes are 0 when the first step starts.
  size_t workspace_bytes = 0, workspace_zeroed = 0;

 private:
  std::byte* reserve(Step& step, size_t bytes);
  void insert_preparation(const Step& step);
  std::array<Step, kMaxSteps> steps_;
  size_t num_steps_ = 0, num_bytes_ = 0, main_ = 0;
  alignas(64) std::byte bytes_[kMaxBytes];
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

template <class Params>
void Plan::set_params(size_t i, Params params) {
  static_assert(std::is_trivially_copyable_v<Params>);
  clear_padding(params);
  std::memcpy(reserve(steps_[i], sizeof(Params)), &params, sizeof(Params));
}

template <class Params>
Step& Plan::add(const Step& step, const Params& params) {
  Step& added = add(step);
  set_params(num_steps_ - 1, params);
  return added;
}

template <class Params>
Step& Plan::add_preparation(const Step& step, const Params& params) {
  insert_preparation(step);
  set_params(main_ - 1, params);
  return steps_[main_ - 1];
}

// A rung's start with its dtypes. kernel.threads is the launch bound.
template <class Config>
Step make_step(const jit::Rung& rung, std::span<const DType> types, const Start<Config>& start) {
  Step step;
  step.kernel.rung = &rung;
  step.kernel.num_types = int(types.size());
  std::copy(types.begin(), types.end(), step.kernel.types.begin());
  step.kernel.threads = start.config.threads;
  step.kernel.min_blocks = start.min_blocks;
  step.kernel.config = config_bytes(start.config);
  step.launch = {.grid = {uint32_t(start.blocks)},
                 .block = {uint32_t(start.config.threads)},
                 .cluster = {uint32_t(start.cluster)},
                 .shared_bytes = uint32_t(start.shared_bytes)};
  return step;
}

}  // namespace tensorcraft::op
