// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/cost.hpp"

#include "tensorcraft/jit/source.hpp"
#include "tensorcraft/op/choice/choose.hpp"
#include "tensorcraft/op/tuning/configuration_selector.hpp"

#include <algorithm>
#include <cmath>

namespace tensorcraft::op {

Cost moving_cost(const NamedTensors& outputs, const NamedTensors& inputs) {
  Cost cost{.flops = double(inputs.entries()[0].view->size())};
  for (const NamedTensors* tensors : {&outputs, &inputs})
    for (const auto& t : tensors->entries()) cost.bytes += double(t.view->nbytes());
  return cost;
}

namespace {

double memory_us(const Cost& cost, const DeviceInfo& device) {
  return cost.bytes / device.memory_gb_per_s / 1e3;
}

double compute_us(const Cost& cost, double tflops) {
  return tflops > 0 ? cost.flops / tflops / 1e6 : 0;
}

// The most operations for each second, in 10^12, that products of such operands can have.
double peak_of_products(const Cost& cost, const DeviceInfo& device, DType dtype) {
  if (dtype == DType::float16 || dtype == DType::bfloat16) return device.peak_bf16_tflops;
  // Integers of 8 bits have the rate of float8.
  if (dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2 || dtype == DType::int8)
    return device.peak_fp8_tflops;
  // Every tensor core takes tf32 at half the rate of 16-bit operands.
  const double tf32 = cost.may_round_to_tf32 ? device.peak_bf16_tflops / 2 : 0;
  return std::max(device.peak_fp32_tflops, tf32);
}

bool uses_tensor_cores(const jit::Rung& rung) {
  const auto headers = jit::include_closure(rung.header);
  return std::ranges::any_of(*headers, [](const auto& header) {
    return header->name == "tensorcraft/device/ptx/mma.cuh" ||
           header->name == "tensorcraft/device/ptx/wgmma.cuh";
  });
}

// A block computes on one multiprocessor, so the last wave takes as long as a full one.
double waves_over_average(const Dim3& grid, const DeviceInfo& device) {
  const double share = double(grid.count()) / std::max(device.num_sms, 1);
  return share > 0 ? std::ceil(share) / share : 1;
}

double estimate_us(const Step& step, const Cost& cost, const DeviceInfo& device, DType dtype) {
  const double peak = uses_tensor_cores(*step.kernel.rung) ? peak_of_products(cost, device, dtype)
                                                           : device.peak_fp32_tflops;
  return std::max(memory_us(cost, device),
                  compute_us(cost, peak) * waves_over_average(step.launch.grid, device));
}

}  // namespace

double floor_us(const Cost& cost, const DeviceInfo& device, DType dtype) {
  if (device.memory_gb_per_s <= 0 || !device.device.is_cuda()) return 0;
  return std::max(memory_us(cost, device), compute_us(cost, peak_of_products(cost, device, dtype)));
}

void add_estimates(Explanation& e, const DeviceInfo& device, DType dtype) {
  if (e.cost.m > 0 && runs_kernels(device.device.type))
    e.prior =
        to_string(ConfigurationSelector(gpu_of(device))
                      .select({e.cost.m, e.cost.n, e.cost.k, dtype}, tuning_history(device, e.op)));
  e.floor_us = floor_us(e.cost, device, dtype);
  if (e.floor_us <= 0) return;
  for (Considered& c : e.variants)
    if (c.plan) c.estimate_us = estimate_us(c.plan->main(), e.cost, device, dtype);
}

}  // namespace tensorcraft::op
