// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/launch/launch.hpp"

#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/cuda/stream_counter.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/op/launch/simt.hpp"
#include "tensorcraft/op/launch/tensor_map.hpp"
#include "tensorcraft/runtime/memory/workspace.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <future>
#include <memory>

namespace tensorcraft::op {

StreamRef resolve_stream(const std::optional<StreamRef>& given, Device device) {
  if (given) return *given;
  return device.is_cuda() ? current_stream(device.index) : StreamRef();
}

namespace {

// Puts an address into every step that has a place for one.
void set_addresses(Plan& plan, int32_t Step::* at, const void* address) {
  for (const Step& step : plan.steps())
    if (step.*at >= 0) plan.set_address(step, step.*at, address);
}

void set_map_addresses(Plan& plan, std::byte* workspace, Device device) {
  for (const Step& step : plan.steps())
    for (const WorkspaceMap& map : step.workspace_maps)
      if (map.at >= 0)
        replace_address(*reinterpret_cast<TensorMap*>(plan.params(step) + map.at),
                        workspace + map.offset, device);
}

bool has_counter(const Plan& plan) {
  return std::ranges::any_of(plan.steps(), [](const Step& s) { return s.counter_at >= 0; });
}

// Memory for one launch: the plan's workspace, and its counter if the stream has none. The plan
// is told where they are.
class LaunchMemory {
 public:
  LaunchMemory(Plan& plan, Device device, StreamRef stream) {
    if (plan.workspace_bytes > 0) {
      void* const workspace =
          allocate(workspace_, plan.workspace_bytes, plan.workspace_zeroed, device, stream);
      set_addresses(plan, &Step::workspace_at, workspace);
      set_map_addresses(plan, static_cast<std::byte*>(workspace), device);
    }
    if (!has_counter(plan)) return;
    const void* counter = device.is_cuda() ? cuda::counter_of(stream) : nullptr;
    if (!counter) counter = allocate(counter_, sizeof(uint32_t), sizeof(uint32_t), device, stream);
    set_addresses(plan, &Step::counter_at, counter);
  }

 private:
  static void* allocate(std::optional<Workspace>& memory, size_t bytes, size_t zeroed,
                        Device device, StreamRef stream) {
    memory.emplace(DType::uint8, Dims{int64_t(bytes)}, device, stream);
    void* const address = memory->view().writable_data();
    if (zeroed && device.is_cuda())
      cuda::fill_async(address, 0, zeroed, stream);
    else
      std::memset(address, 0, zeroed);
    return address;
  }
  std::optional<Workspace> workspace_, counter_;
};

void launch_step(const Plan& plan, const Step& step, const LoadedKernel& kernel, Device device,
                 StreamRef stream, std::string_view op) {
  LaunchConfig config = step.launch;
  // A kernel waits for those in front of it itself (jit::entry_text), so its start hides behind
  // them.
  config.programmatic_dependent_launch = device_info(device).has_dependent_launch();
  launch(kernel, config, plan.params(step), stream, op);
}

// Later kernels load beside the first, and all are there before one starts.
void launch_steps(const Plan& plan, Device device, StreamRef stream, std::string_view op) {
  const auto steps = plan.steps();
  std::array<std::future<void>, Plan::kMaxSteps> ahead;
  for (size_t i = 1; i < steps.size(); ++i)
    ahead[i] = jit::load_ahead(steps[i].kernel, device, stream);
  std::array<std::shared_ptr<const LoadedKernel>, Plan::kMaxSteps> kernels;
  for (size_t i = 0; i < steps.size(); ++i)
    kernels[i] = jit::get_kernel(steps[i].kernel, device, stream);
  for (size_t i = 0; i < steps.size(); ++i)
    launch_step(plan, steps[i], *kernels[i], device, stream, op);
}

void launch_on_gpu(const Plan& plan, Device device, StreamRef stream, std::string_view op) {
  if (plan.steps().size() > 1) return launch_steps(plan, device, stream, op);
  const auto& kernel = jit::get_kernel(plan.first().kernel, device, stream);
  launch_step(plan, plan.first(), *kernel, device, stream, op);
}

}  // namespace

void launch_plan(const Plan& plan, Device device, StreamRef stream, std::string_view op) {
  const auto run = [&](const Plan& complete) {
    if (device.type == DeviceType::simt)
      launch_on_simt(complete);
    else
      launch_on_gpu(complete, device, stream, op);
  };
  if (plan.workspace_bytes == 0 && !has_counter(plan)) return run(plan);
  Plan own = plan;
  const LaunchMemory memory(own, device, stream);
  run(own);
}

}  // namespace tensorcraft::op
