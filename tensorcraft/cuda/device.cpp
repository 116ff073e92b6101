// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/device.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/cuda/session.hpp"

#include <algorithm>
#include <array>
#include <fstream>

namespace tensorcraft {
namespace {

using cuda::DeviceSlot;
using cuda::Driver;
using cuda::Session;

// Dense floating-point operations per clock of one SM, by the first architecture that has them.
// The rates are those of the data-centre part of a generation.
struct Rates {
  int since;
  double bf16, fp8, fp32;
  double max_tensor_mhz;  // data sheets rate tensor cores at this clock; 0: the device's own
};
constexpr std::array<Rates, 6> kRates = {{
    {80, 2048, 0, 128, 0},
    {86, 1024, 0, 256, 0},
    {89, 1024, 2048, 256, 0},
    {90, 4096, 8192, 256, 1830},
    {100, 8192, 16384, 256, 1855},
    {120, 1024, 2048, 256, 0},
}};

void set_peaks(DeviceInfo& info, double clock_mhz) {
  const Rates* rates = nullptr;
  for (const Rates& row : kRates)
    if (row.since <= info.compute_capability) rates = &row;
  if (!rates) return;
  const double tensor_mhz =
      rates->max_tensor_mhz > 0 ? std::min(clock_mhz, rates->max_tensor_mhz) : clock_mhz;
  info.peak_bf16_tflops = info.num_sms * tensor_mhz * rates->bf16 * 1e-6;
  info.peak_fp8_tflops = info.num_sms * tensor_mhz * rates->fp8 * 1e-6;
  info.peak_fp32_tflops = info.num_sms * clock_mhz * rates->fp32 * 1e-6;
}

void describe(const Driver& driver, int index, DeviceSlot& slot) {
  int ordinal = 0;
  driver.device_get(&ordinal, index);
  const auto attribute = [&](cuda::DeviceAttribute which) {
    int value = 0;
    driver.device_get_attribute(&value, which, ordinal);
    return value;
  };
  DeviceInfo& info = slot.info;
  char name[256] = {};
  driver.device_get_name(name, sizeof(name) - 1, ordinal);
  info.device = Device::cuda(index);
  info.name = name;
  info.compute_capability = attribute(cuda::kComputeMajor) * 10 + attribute(cuda::kComputeMinor);
  info.num_sms = attribute(cuda::kMultiprocessorCount);
  info.threads_per_sm = attribute(cuda::kThreadsPerMultiprocessor);
  info.registers_per_sm = attribute(cuda::kRegistersPerMultiprocessor);
  info.shared_bytes_per_sm = size_t(attribute(cuda::kSharedBytesPerMultiprocessor));
  info.shared_bytes_per_block = size_t(attribute(cuda::kSharedBytesPerBlockOptIn));
  info.l2_bytes = size_t(attribute(cuda::kL2Bytes));
  driver.device_total_mem(&info.memory_bytes, ordinal);
  // Two transfers a clock over the whole bus; kHz x bytes = 1e-6 GB/s.
  info.memory_gb_per_s =
      2.0 * attribute(cuda::kMemoryClockKhz) * (attribute(cuda::kMemoryBusBits) / 8.0) * 1e-6;
  set_peaks(info, attribute(cuda::kClockKhz) * 1e-3);
  if (info.compute_capability < 80)
    slot.problem =
        join("TensorCraft requires SM >= 80 (Ampere)\n  ", info.device, " (", info.name, ") is SM ",
             info.compute_capability, "; choose another GPU, or use device \"cpu\"");
}

std::string host_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "host CPU";
}

// A typical part of each architecture, for work that has no device to ask.
struct Typical {
  std::string_view name;
  int compute_capability, num_sms, threads_per_sm;
  int shared_kib_per_sm, l2_mib, memory_gib;
  double memory_gb_per_s, clock_mhz;
};
constexpr std::array<Typical, 6> kTypical = {{
    {"A100", 80, 108, 2048, 164, 40, 80, 2039, 1410},
    {"A10", 86, 72, 1536, 100, 6, 24, 600, 1695},
    {"L40S", 89, 142, 1536, 100, 96, 48, 864, 2520},
    {"H200", 90, 132, 2048, 228, 50, 141, 4917, 1980},
    {"B200", 100, 148, 2048, 228, 126, 180, 8000, 1965},
    {"RTX PRO 6000", 120, 188, 1536, 100, 128, 96, 1792, 2600},
}};

}  // namespace

namespace cuda {

DeviceSlot& device_slot(int index) {
  Session& now = session();
  if (!now.problem.empty()) fail(ErrorKind::unsupported, now.problem);
  if (index < 0 || index >= now.count)
    fail(ErrorKind::value, "device cuda:", index, " does not exist; this machine has ", now.count,
         now.count == 1 ? " CUDA device: cuda:0" : " CUDA devices, cuda:0 to cuda:",
         now.count == 1 ? std::string() : std::to_string(now.count - 1));
  DeviceSlot& slot = now.devices[size_t(index)];
  std::call_once(slot.described, [&] { describe(*now.driver, index, slot); });
  if (!slot.problem.empty()) fail(ErrorKind::unsupported, slot.problem);
  return slot;
}

}  // namespace cuda

namespace {

DeviceInfo* info_of_cpu() { return new DeviceInfo{.device = Device::cpu(), .name = host_name()}; }

// Plans are those of Hopper, so that its kernels are what runs.
DeviceInfo* info_of_simt() {
  auto info = std::make_unique<DeviceInfo>(device_info_of_arch("sm_90a"));
  info->device = Device::simt();
  info->name = "SIMT emulator on " + host_name();
  return info.release();
}

const DeviceInfo& host_info(DeviceType type) {
  static constinit FirstMade<const DeviceInfo, info_of_cpu> cpu;
  static constinit FirstMade<const DeviceInfo, info_of_simt> simt;
  return type == DeviceType::simt ? *simt : *cpu;
}

}  // namespace

std::string DeviceInfo::arch() const {
  if (compute_capability == 0) return {};
  const bool has_suffix = compute_capability == 90 || compute_capability >= 100;
  return "sm_" + std::to_string(compute_capability) + (has_suffix ? "a" : "");
}

int cuda_device_count() { return cuda::session().count; }

const DeviceInfo& device_info(Device device) {
  return device.is_cuda() ? cuda::device_slot(device.index).info : host_info(device.type);
}

DeviceInfo device_info_of_arch(std::string_view arch) {
  std::string_view base = arch;
  if (base.ends_with('a')) base.remove_suffix(1);
  for (const Typical& row : kTypical) {
    if (base != "sm_" + std::to_string(row.compute_capability)) continue;
    DeviceInfo info{.device = Device::cuda(0), .name = std::string(row.name)};
    info.compute_capability = row.compute_capability;
    if (arch != base && arch != info.arch()) break;
    info.num_sms = row.num_sms;
    info.threads_per_sm = row.threads_per_sm;
    info.registers_per_sm = 65536;
    info.shared_bytes_per_sm = size_t(row.shared_kib_per_sm) << 10;
    info.shared_bytes_per_block = info.shared_bytes_per_sm - 1024;  // the system keeps 1 KiB
    info.l2_bytes = size_t(row.l2_mib) << 20;
    info.memory_bytes = size_t(row.memory_gib) << 30;
    info.memory_gb_per_s = row.memory_gb_per_s;
    set_peaks(info, row.clock_mhz);
    return info;
  }
  const std::vector<std::string> names = known_architectures();
  std::string all;
  for (const std::string& name : names)
    all.append(all.empty() ? "" : &name == &names.back() ? " or " : ", ").append(name);
  fail(ErrorKind::value, "architecture \"", arch, "\" is not known; use ", all);
}

std::vector<std::string> known_architectures() {
  std::vector<std::string> names;
  names.reserve(std::size(kTypical));
  for (const Typical& row : kTypical)
    names.push_back(DeviceInfo{.compute_capability = row.compute_capability}.arch());
  return names;
}

void synchronize(Device device) {
  if (!device.is_cuda()) return;
  const DeviceGuard guard(device.index);
  cuda::require_driver().context_synchronize();
}

DeviceGuard::DeviceGuard(int device) {
  const Driver& driver = cuda::require_driver();
  CUctx_st* wanted = cuda::primary_context(device);
  CUctx_st* found = nullptr;
  driver.context_get_current(&found);
  if (found == wanted) return;
  driver.context_set_current(wanted);
  previous_ = found;
  switched_ = true;
}

DeviceGuard::~DeviceGuard() {
  if (switched_)
    cuda::session().driver->context_set_current.quiet(static_cast<CUctx_st*>(previous_));
}

}  // namespace tensorcraft
