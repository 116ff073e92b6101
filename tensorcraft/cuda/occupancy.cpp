// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/occupancy.hpp"

#include "tensorcraft/core/error.hpp"

#include <algorithm>
#include <array>

namespace tensorcraft {
namespace {

// These are the same on every architecture from SM 80 on.
constexpr int kWarp = 32;
constexpr int kPartitions = 4;               // of a multiprocessor, with registers of their own
constexpr int kRegisterUnit = 256;           // registers of a warp come in these
constexpr size_t kSharedUnit = 128;          // bytes
constexpr size_t kSystemSharedBytes = 1024;  // of each block, for the system
constexpr int kMaxThreads = 1024, kMaxRegisters = 255;

int max_blocks(int compute_capability) {
  switch (compute_capability) {
    case 86:
    case 87:
      return 16;
    case 89:
    case 120:
    case 121:
      return 24;
    default:
      return 32;
  }
}

template <class T>
T round_up(T value, T unit) {
  return (value + unit - 1) / unit * unit;
}

// A warp lives in one partition and takes its registers there.
int blocks_by_registers(const DeviceInfo& device, const BlockUse& use, int warps) {
  if (use.registers <= 0) return max_blocks(device.compute_capability);
  const int warp_registers = round_up(use.registers * kWarp, kRegisterUnit);
  const int warps_per_partition = device.registers_per_sm / kPartitions / warp_registers;
  if (round_up(warps, kPartitions) * warp_registers > device.registers_per_sm) return 0;
  return warps_per_partition * kPartitions / warps;
}

int blocks_by_shared(const DeviceInfo& device, const BlockUse& use) {
  if (use.shared_bytes > device.shared_bytes_per_block) return 0;
  const size_t block_bytes = round_up(use.shared_bytes + kSystemSharedBytes, kSharedUnit);
  return int(device.shared_bytes_per_sm / block_bytes);
}

}  // namespace

Occupancy occupancy(const DeviceInfo& device, const BlockUse& use) {
  if (device.compute_capability == 0)
    fail(ErrorKind::value, "occupancy: ", device.device, " is no GPU");
  if (use.threads <= 0)
    fail(ErrorKind::value, "occupancy: a block has 1 thread or more, got ", use.threads);
  struct Limit {
    std::string_view name;
    int blocks;
  };
  const int warps = (use.threads + kWarp - 1) / kWarp;
  const int max_warps = device.threads_per_sm / kWarp;
  const bool fits = use.threads <= kMaxThreads && use.registers <= kMaxRegisters;
  const std::array<Limit, 4> limits = {{
      {"registers", fits ? blocks_by_registers(device, use, warps) : 0},
      {"shared memory", blocks_by_shared(device, use)},
      {"threads", use.threads <= kMaxThreads ? max_warps / warps : 0},
      {"blocks", max_blocks(device.compute_capability)},
  }};
  const Limit& least = *std::ranges::min_element(limits, {}, &Limit::blocks);
  return {.blocks_per_sm = least.blocks,
          .fraction = double(least.blocks * warps) / max_warps,
          .limit = least.name};
}

}  // namespace tensorcraft
