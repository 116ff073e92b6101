// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/log.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/session.hpp"

#include <atomic>
#include <mutex>
#include <optional>

namespace tensorcraft {
namespace {

struct Choice {
  ForkSafeMutex mutex;
  std::optional<Device> device;
  std::string fallback;  // what is warned of if the CPU was chosen and nobody asked for it
  std::atomic<bool> must_warn = false;
};
Choice& choice = *new Choice;  // leaked: usable until the process ends

// Why a device cannot be used; empty when it can.
std::string problem_of(Device device) {
  try {
    device_info(device);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

// The first GPU that can be used, else the CPU and the reason for it.
std::pair<Device, std::string> detect() {
  if (cuda::forked()) return {Device::cpu(), "this process was forked after the driver was opened"};
  std::string reason = cuda::driver_problem();
  for (int index = 0; index < cuda_device_count(); ++index) {
    const std::string problem = problem_of(Device::cuda(index));
    if (problem.empty()) return {Device::cuda(index), {}};
    if (reason.empty()) reason = problem;
  }
  return {Device::cpu(), reason.substr(0, reason.find('\n'))};
}

}  // namespace

namespace cuda {

void forget_default_device() {
  const std::lock_guard lock(choice.mutex);
  choice.device.reset();
  choice.fallback.clear();
  choice.must_warn = false;
}

void warn_of_fallback() noexcept {
  if (!choice.must_warn.load(std::memory_order_relaxed) || !choice.must_warn.exchange(false))
    return;
  const std::lock_guard lock(choice.mutex);
  log_warn(choice.fallback);
}

}  // namespace cuda

Device default_device() {
  const std::lock_guard lock(choice.mutex);
  // A GPU chosen before a fork cannot be used in the child.
  const bool stale = cuda::forked() && choice.device && choice.device->is_cuda();
  if (choice.device && !stale) return *choice.device;
  const std::string configured = config().device;
  if (!configured.empty() && !stale) {
    const Device device = parse_device(configured);
    device_info(device);
    choice.device = device;
    return device;
  }
  const auto [device, reason] = detect();
  choice.device = device;
  if (!reason.empty() && choice.fallback.empty()) {
    choice.fallback =
        reason +
        ". Falling back to CPU simulation backend: operators run on the CPU as native code, and no "
        "GPU is simulated; TENSORCRAFT_DEVICE=cpu says that this is meant";
    choice.must_warn = true;
  }
  return device;
}

void set_default_device(Device device) {
  device_info(device);  // a device that cannot be used is refused here
  const std::lock_guard lock(choice.mutex);
  choice.device = device;
  choice.must_warn = false;
}

std::vector<Device> devices() {
  std::vector<Device> usable{Device::cpu()};
  for (int index = 0; index < cuda_device_count(); ++index)
    if (problem_of(Device::cuda(index)).empty()) usable.push_back(Device::cuda(index));
  if (TENSORCRAFT_SIMT) usable.push_back(Device::simt());
  return usable;
}

}  // namespace tensorcraft
