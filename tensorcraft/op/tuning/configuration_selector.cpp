// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/tuning/configuration_selector.hpp"

#include "tensorcraft/core/error.hpp"

#include <algorithm>
#include <cstdlib>

namespace tensorcraft::op {
namespace {

constexpr int kMostThreads = 1024;
constexpr int kRowsOfInstruction = 16, kColumnsOfInstruction = 8;  // of mma.sync
constexpr int64_t kSharedBytes = 48 << 10;  // that every device has, if it does not say

bool is_small(const ProductShape& s) { return std::max({s.m, s.n, s.k}) <= 512; }
bool is_large(const ProductShape& s) { return std::min({s.m, s.n, s.k}) > 2048; }
// A small product has its own rule.
bool is_square(const ProductShape& s) { return 10 * std::abs(s.m - s.n) < s.m && !is_small(s); }
bool is_any(const ProductShape&) { return true; }

constexpr ConfigurationRule kRules[] = {
    {"large", "m, n and k above 2048", is_large, {128, 128, 64, 4, 4, 2}, 0.9},
    {"square", "n within a tenth of m, not small", is_square, {128, 128, 32, 4, 4, 2}, 0.88},
    {"small", "m, n and k up to 512", is_small, {64, 64, 32, 2, 2, 1}, 0.85},
    {"default", "no other rule matches", is_any, {64, 64, 32, 2, 2, 2}, 0.5}};

// Elements along k of one matrix instruction.
int k_granularity(DType dtype) { return 32 / int(dtype_bytes(dtype)); }

KernelConfiguration conservative(KernelConfiguration c) {
  c.stages = std::max(c.stages - 1, 1);
  c.block_m = std::max(c.block_m / 2, kRowsOfInstruction * c.warps_m);
  c.block_n = std::max(c.block_n / 2, kColumnsOfInstruction * c.warps_n);
  return c;
}

KernelConfiguration aggressive(KernelConfiguration c) {
  ++c.stages;
  return c;
}

}  // namespace

std::string to_string(const KernelConfiguration& c) {
  return join(c.block_m, " x ", c.block_n, " x ", c.block_k, ", ", c.warps_m, " x ", c.warps_n,
              " warps, ", c.stages, c.stages == 1 ? " stage" : " stages");
}

std::string to_string(const SelectedConfiguration& selected) {
  return join("rule ", selected.rule, " (", selected.condition, "), confidence ",
              selected.confidence, ": ", to_string(selected.configuration),
              selected.changed.empty() ? "" : "; ", selected.changed);
}

std::span<const ConfigurationRule> ConfigurationSelector::rules() { return kRules; }

std::string ConfigurationSelector::validate_configuration(const KernelConfiguration& c,
                                                          DType dtype) const {
  if (std::min({c.block_m, c.block_n, c.block_k, c.warps_m, c.warps_n, c.stages}) < 1)
    return "every size must be at least 1";
  if (32 * c.warps_m * c.warps_n > kMostThreads)
    return join(c.warps_m, " x ", c.warps_n, " warps are more than ", kMostThreads, " threads");
  if (c.block_m % (kRowsOfInstruction * c.warps_m) ||
      c.block_n % (kColumnsOfInstruction * c.warps_n))
    return join("a warp's part of ", c.block_m, " x ", c.block_n, " must be a multiple of ",
                kRowsOfInstruction, " x ", kColumnsOfInstruction);
  if (c.block_k % k_granularity(dtype))
    return join("block_k must be a multiple of ", k_granularity(dtype), " for ", dtype);
  const int64_t bytes =
      int64_t(c.stages) * c.block_k * (c.block_m + c.block_n) * int64_t(dtype_bytes(dtype));
  const int64_t most = gpu_.shared_bytes_per_block ? gpu_.shared_bytes_per_block : kSharedBytes;
  if (bytes > most)
    return join(c.stages, " stages take ", bytes, " bytes of shared memory, and a block has ",
                most);
  return {};
}

// Stages go first, then steps along k, then rows and columns; what is left is one instruction.
KernelConfiguration ConfigurationSelector::feasible(KernelConfiguration c, DType dtype) const {
  const int k = k_granularity(dtype);
  c.block_k = (c.block_k + k - 1) / k * k;
  while (!validate_configuration(c, dtype).empty()) {
    if (c.stages > 1)
      --c.stages;
    else if (c.block_k > k)
      c.block_k = std::max(c.block_k / 2 / k * k, k);
    else if (c.block_m > kRowsOfInstruction * c.warps_m)
      c.block_m = std::max(c.block_m / 2, kRowsOfInstruction * c.warps_m);
    else if (c.block_n > kColumnsOfInstruction * c.warps_n)
      c.block_n = std::max(c.block_n / 2, kColumnsOfInstruction * c.warps_n);
    else
      return {kRowsOfInstruction, kColumnsOfInstruction, k, 1, 1, 1};
  }
  return c;
}

SelectedConfiguration ConfigurationSelector::select(const ProductShape& shape,
                                                    std::optional<double> history) const {
  const ConfigurationRule* best = nullptr;
  for (const ConfigurationRule& rule : kRules)
    if (rule.matches(shape) && (!best || rule.confidence > best->confidence)) best = &rule;
  SelectedConfiguration selected{best->configuration, best->name, best->condition,
                                 best->confidence};
  KernelConfiguration wanted = best->configuration;
  if (history && *history < 0.7) {
    wanted = conservative(wanted);
    selected.changed = "smaller, as choices were far from the fastest";
  } else if (history && *history > 0.95) {
    const KernelConfiguration larger = aggressive(wanted);
    if (validate_configuration(larger, shape.dtype).empty()) {
      wanted = larger;
      selected.changed = "with another stage, as choices were near the fastest";
    }
  }
  selected.configuration = feasible(wanted, shape.dtype);
  if (selected.configuration != wanted)
    selected.changed.append(selected.changed.empty() ? "" : "; ")
        .append("made to fit the device and ")
        .append(to_string(shape.dtype));
  return selected;
}

}  // namespace tensorcraft::op
