// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/device.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace tensorcraft {

// Describes a device and what it can do. The CPU has a name and nothing else, the emulator
// what a typical sm_90a has; for CUDA devices every field comes from the driver, so nothing here
// depends on the toolkit that built the library.
struct DeviceInfo {
  // 0 if it does not apply or the driver does not say; peaks are dense.
  Device device;
  std::string name;
  int compute_capability = 0;  // 90 for 9.0; 0 on the CPU
  int num_sms = 0;
  int threads_per_sm = 0;
  int registers_per_sm = 0;
  size_t shared_bytes_per_sm = 0;
  size_t shared_bytes_per_block = 0;  // the opt-in maximum of dynamic shared memory
  size_t l2_bytes = 0;
  size_t memory_bytes = 0;
  double memory_gb_per_s = 0;  // theoretical, from clock and bus width
  double peak_bf16_tflops = 0, peak_fp8_tflops = 0, peak_fp32_tflops = 0;

  // By the compute capability.
  bool has_tensor_cores() const { return compute_capability >= 70; }
  bool has_tma() const { return compute_capability >= 90; }
  bool has_clusters() const { return compute_capability >= 90; }
  bool has_wgmma() const { return compute_capability == 90; }  // sm_90a alone
  bool has_dependent_launch() const { return compute_capability >= 90; }
  bool has_fp8() const { return compute_capability >= 89; }
  bool has_ue8m0() const { return compute_capability >= 100; }
  // "sm_90a", "sm_89": what NVRTC is asked for.
  std::string arch() const;
};

// The CUDA devices the driver shows; empty without a driver, never an error.
int cuda_device_count();
// Cached. Kind value for an index that does not exist, kind unsupported with the exact message when
// there is no driver ("CUDA driver not detected") or the GPU is older than SM 80.
const DeviceInfo& device_info(Device device);
// A device described by its architecture alone ("sm_80" ... "sm_120"), for the compile gate and
// explain on a machine without it. Kind value for an unknown name.
DeviceInfo device_info_of_arch(std::string_view arch);
// The names it knows: "sm_80", ..., "sm_120a".
std::vector<std::string> known_architectures();

// The device an operator uses for host arrays. The first call picks cuda:0 if it is a usable GPU,
// else cpu, and the first operator that then runs there warns once and says why;
// TENSORCRAFT_DEVICE and set_default_device() override.
Device default_device();
void set_default_device(Device device);
namespace cuda {
// An operator that runs on the CPU calls this: it warns once if default_device() fell back to it.
void warn_of_fallback() noexcept;
}  // namespace cuda
// Every usable device: cpu, the GPUs, then simt if it is in the build.
std::vector<Device> devices();
// Waits for all work on a device; host devices return at once.
void synchronize(Device device);

// Makes the primary context of a device current on this thread for a scope, and restores the one
// before it, also when an exception passes.
class DeviceGuard {
 public:
  // Kind value for an index that does not exist.
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  void* previous_ = nullptr;
  bool switched_ = false;
};

}  // namespace tensorcraft
