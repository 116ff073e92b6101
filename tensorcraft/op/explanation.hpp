// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/launch/host_memory.hpp"
#include "tensorcraft/op/launch/kernel_report.hpp"
#include "tensorcraft/op/tuning/tuned.hpp"
#include "tensorcraft/op/value.hpp"
#include "tensorcraft/op/variant.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::op {

// The answer of a variant to a call.
struct Considered {
  // The variant, and whether it accepts the call.
  VariantInfo variant;
  bool accepted = false;
  std::string reason;        // why it declines, or accepts only if it is named; else empty
  std::optional<Plan> plan;  // of kernels that accept
  double estimate_us = 0;    // of the least time of its kernels, see add_estimates(); 0: not known
  // The Configs that its choice weighed, in the order of its table; if it declines for what the
  // call fixes, those that it has. Empty: it has one for each call.
  std::vector<Weighed> candidates = {};
};
// Why the chosen candidate is it, one sentence. Empty if there is none.
std::string reason_of_candidate(const Considered& c);

// Says what a call would run, and why.
struct Explanation {
  // These describe the call: who computes it where, every row that was asked, and the work it is.
  // The device is "cuda:0", or "sm_90a" if an architecture is asked about that no such GPU of this
  // machine has.
  std::string_view op;
  std::string device;
  std::string_view variant;  // chosen; empty when none accepts
  std::vector<Considered> variants;
  Cost cost;
  double floor_us = 0;  // no variant can be faster on this device; 0 where the peak is unknown
  // Reports on the chosen variant, one for each step of its plan, once add_kernel_reports() ran.
  std::vector<KernelReport> kernels;
  // How the operator reads the shapes, "heads 24, seq_q 4", if they alone do not say it.
  std::string sizes;
  // The call as text, by which what is tuned is found; empty if only the cost model may choose.
  std::string call = {};
  std::optional<TunedEntry> tuned = {};  // why the variant is chosen, if that was measured
  // For a product on a GPU: what a rule of thumb expects of its tile, see ConfigurationSelector.
  std::string prior = {};
  // The inputs that go through page-locked memory of the library, and why; empty without any.
  std::string staged = {};
};
// Compiles the kernels of what was chosen, if it has any, and adds what they take. Never fails.
// Kernels of the emulator are host code, of which there is nothing to add but the launch.
void add_kernel_reports(Explanation& e, const DeviceInfo& device);
// The file of its device code, as "tensorcraft/ops/gemm/08_tma.cuh"; empty if it has no plan.
std::string file_of(const Considered& c);
// A readable table, a line for each variant, then the kernels and the work.
std::string to_string(const Explanation& e);
// The fields of a Config: "threads = 256, vector = 4".
std::string config_text(const Step& step);
// Returns what explain says of inputs that kernels cannot reach; empty if there are none.
std::string staged_text(std::span<const Parameter> inputs, const InputSet& pageable);
// "cuda:0", or "sm_90a" if the device is known by its architecture alone.
std::string place_of(const DeviceInfo& device);

}  // namespace tensorcraft::op
