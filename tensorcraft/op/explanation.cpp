// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/explanation.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/jit/entry.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <utility>

namespace tensorcraft::op {

std::string config_text(const Step& step) {
  return jit::config_fields(*step.kernel.rung, step.kernel.config);
}

std::string staged_text(std::span<const Parameter> inputs, const InputSet& pageable) {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (pageable.test(i)) text += join(text.empty() ? "" : ", ", inputs[i].name);
  if (text.empty()) return text;
  return text +
         ": pageable memory of the host, which kernels cannot reach, so it goes through the "
         "page-locked ring of the transfer engine, gathered and scattered by the host while the "
         "call waits; tc.memory.pinned() makes memory that kernels read and write themselves";
}

std::string place_of(const DeviceInfo& device) {
  const Device place = device.device;
  if (!place.is_cuda()) return to_string(place);
  const std::vector<Device> usable = devices();
  const bool is_here = std::ranges::find(usable, place) != usable.end() &&
                       device_info(place).arch() == device.arch();
  return is_here ? to_string(place) : device.arch();
}

namespace {

std::ostream& operator<<(std::ostream& out, const Dim3& d) {
  return out << d.x << 'x' << d.y << 'x' << d.z;
}

// "100.7 M": four digits, with the prefix of a thousand.
std::string scaled(double value) {
  constexpr std::array<std::string_view, 5> kPrefixes = {"", "k", "M", "G", "T"};
  size_t prefix = 0;
  for (; value >= 1000 && prefix + 1 < kPrefixes.size(); ++prefix) value /= 1000;
  std::ostringstream out;
  out << std::setprecision(4) << value << ' ' << kPrefixes[prefix];
  return std::move(out).str();
}

// With two digits, and all of those in front of the point.
std::string rounded(double value) {
  std::ostringstream out;
  if (value >= 10) out << std::fixed;
  out << std::setprecision(value >= 10 ? 0 : 2) << value;
  return std::move(out).str();
}

// "kernel for sm_90a"; the emulator runs the plan of such a GPU as host code.
void write(std::ostream& out, const char* which, const KernelReport& k, bool is_simt) {
  const LaunchConfig& launch = k.launch;
  out << which << (is_simt ? " as for " : " for ") << k.arch << ": grid " << launch.grid
      << ", block " << launch.block;
  if (launch.cluster.count() > 1) out << ", cluster " << launch.cluster;
  if (!k.signature.empty())
    out << "\n  " << k.signature << "\n  " << k.registers << " registers a thread, "
        << k.shared_bytes << " bytes of shared memory a block, " << k.spill_bytes
        << " bytes of spills, " << k.code_bytes << " bytes of code";
  const Occupancy& o = k.occupancy;
  if (!k.problem.empty())
    out << "\n  registers and occupancy are not known: " << k.problem;
  else
    out << "\n  occupancy " << std::lround(100 * o.fraction) << " %: " << o.blocks_per_sm
        << (o.blocks_per_sm == 1 ? " block of " : " blocks of ") << launch.block.count()
        << " threads on a multiprocessor, limited by " << o.limit;
  out << '\n';
}

// Why the chosen variant is it.
std::string reason_of_choice(const Explanation& e) {
  if (e.variant.empty()) return "";
  if (e.tuned) return ", tuned: " + gain_text(*e.tuned);
  for (const Considered& c : e.variants)
    if (c.accepted && c.reason.empty())
      return c.variant.name == e.variant ? ", the first that accepts, in the order of the table"
                                         : ", because the call names it";
  return ", because the call names it";
}

std::string load_text(const Weighed& w) {
  return join(w.rounds, w.rounds == 1 ? " round" : " rounds", " of blocks, multiprocessors busy ",
              std::lround(100 * w.busy), " % of it");
}

// Writes what the choice weighed, the chosen one marked.
void write_candidates(std::ostream& out, const Considered& c, const std::string& indent) {
  if (c.candidates.empty()) return;
  out << indent << reason_of_candidate(c) << '\n';
  for (const Weighed& w : c.candidates) {
    out << indent << (w.is_chosen ? "* " : "  ") << w.config << ": ";
    if (w.us > 0) out << rounded(w.us) << " us predicted, ";
    out << load_text(w) << '\n';
  }
}

void write(std::ostream& out, const Explanation& e, const Considered& c, size_t width) {
  const bool is_chosen = c.variant.name == e.variant;
  const std::string indent(width + 4, ' ');
  out << (is_chosen ? "* " : "  ") << c.variant.name
      << std::string(width - c.variant.name.size() + 2, ' ');
  if (!c.accepted)
    out << "declines: " << c.reason;
  else if (is_chosen && c.plan)
    out << config_text(c.plan->main());
  else
    out << "accepts" << (c.reason.empty() ? "" : " by name: ") << c.reason;
  if (c.estimate_us > 0)
    out << (is_chosen && config_text(c.plan->main()).empty() ? "" : ", ") << "estimate "
        << rounded(c.estimate_us) << " us or more";
  out << '\n' << indent << c.variant.idea << '\n';
  if (!is_chosen || !c.plan) return;
  out << indent << file_of(c) << '\n';
  write_candidates(out, c, indent);
}

}  // namespace

std::string reason_of_candidate(const Considered& c) {
  const auto chosen = std::ranges::find(c.candidates, true, &Weighed::is_chosen);
  if (chosen == c.candidates.end()) return {};
  if (c.candidates.size() == 1) return join("the only Config it can have: ", load_text(*chosen));
  return join("of ", c.candidates.size(), " Configs the marked one is ",
              chosen->us > 0 ? "predicted" : "expected", " to end first: ", load_text(*chosen));
}

std::string file_of(const Considered& c) {
  return c.plan ? c.plan->main().kernel.rung->header : std::string();
}

void add_kernel_reports(Explanation& e, const DeviceInfo& device) {
  for (const Considered& c : e.variants)
    if (c.variant.name == e.variant && c.plan)
      for (const Step& step : c.plan->steps()) e.kernels.push_back(report_kernel(step, device));
}

std::string to_string(const Explanation& e) {
  const bool is_simt = e.device == to_string(Device::simt());
  std::ostringstream out;
  out << e.op << (e.device.starts_with("sm_") ? " for " : " on ") << e.device << ": "
      << (e.variant.empty() ? std::string_view("no variant accepts") : e.variant)
      << reason_of_choice(e) << '\n';
  size_t width = 0;
  for (const Considered& c : e.variants) width = std::max(width, c.variant.name.size());
  for (const Considered& c : e.variants) write(out, e, c, width);
  constexpr const char* kWhich[] = {"kernel", "then a second kernel", "then a third kernel",
                                    "then a fourth kernel"};
  for (size_t i = 0; i < e.kernels.size(); ++i) write(out, kWhich[i], e.kernels[i], is_simt);
  if (!e.sizes.empty()) out << "sizes: " << e.sizes << '\n';
  if (!e.prior.empty()) out << "prior: " << e.prior << '\n';
  if (!e.staged.empty()) out << "staged: " << e.staged << '\n';
  out << "work: " << scaled(e.cost.bytes) << "B, " << scaled(e.cost.flops) << "FLOP\n";
  if (e.device == to_string(Device::cpu()))
    out << "a GPU that is not here can be asked about: name its architecture, such as sm_90a\n";
  if (e.floor_us > 0)
    out << "floor: " << rounded(e.floor_us)
        << " us, which no variant can beat. An estimate is of bytes and operations at the device's "
           "peaks; it is no measurement\n";
  return std::move(out).str();
}

}  // namespace tensorcraft::op
