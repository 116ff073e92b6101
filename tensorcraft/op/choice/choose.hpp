// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/schema.hpp"
#include "tensorcraft/op/launch/simt.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

// Which variant computes a problem, and what the others say of it.
namespace tensorcraft::op {

// Does a device run kernels?
constexpr bool runs_kernels(DeviceType device) { return device != DeviceType::cpu; }

// Every variant of the operator, best first.
template <class Problem, class Options>
std::vector<VariantInfo> all_variants(const Definition<Problem, Options>& def) {
  std::vector<VariantInfo> all;
  for (const auto* item : def.ladder.items) all.push_back(item->info);
  for (const auto& v : def.host) all.push_back(v.info());
  return all;
}

// Returns the answers of the device's variants, best first: `explain` shows all, the errors quote
// them. The plan of `tuned`, if it is one, is that of its variant.
template <class Problem, class Options>
std::vector<Considered> consider(const Definition<Problem, Options>& def, const Problem& problem,
                                 const DeviceInfo& device, const Chosen& tuned = {}) {
  std::vector<Considered> all;
  const bool is_simt = device.device.type == DeviceType::simt;
  if (runs_kernels(device.device.type)) {
    const LadderCall<Problem> call(def.ladder, problem, device);
    for (const LadderItem* item : def.ladder.items) {
      const Answer answer = call.ask(*item);
      const bool accepts = answer.refusal.empty();
      Considered& one = all.emplace_back(item->info, accepts,
                                         std::string(accepts ? answer.preference : answer.refusal));
      if (accepts)
        one.plan = tuned.variant == item->info.name ? tuned.plan : call.plan(*item, answer);
      one.candidates = call.weigh(*item, accepts ? &*one.plan : nullptr);
      if (accepts && is_simt) require_simt_instance(one);
    }
  } else {
    for (const auto& v : def.host) {
      const std::string_view refusal = v.refusal_of(problem);
      all.push_back({v.info(), refusal.empty(), std::string(refusal), std::nullopt});
    }
  }
  return all;
}

// Adds the variant that `forced` names if it is one of another device; fails if there is none.
void add_forced(std::vector<Considered>& all, std::span<const VariantInfo> variants,
                std::string_view op, std::string_view forced, Device device);

// The error if no variant takes a call.
[[noreturn]] void no_variant(std::string_view op, std::string_view forced,
                             std::span<const Considered> considered);
// The error that says why no variant of the device takes the problem.
template <class Problem, class Options>
[[noreturn]] void fail_to_choose(const Definition<Problem, Options>& def, const Problem& problem,
                                 const DeviceInfo& device, std::string_view forced) {
  std::vector<Considered> all = consider(def, problem, device);
  if (!forced.empty()) add_forced(all, all_variants(def), def.name, forced, device.device);
  no_variant(def.name, forced, all);
}

// The rung of first_of_ladder(), or the error.
template <class Problem, class Options>
Chosen choose_rung(const Definition<Problem, Options>& def, const Problem& problem,
                   const DeviceInfo& device, std::string_view forced) {
  Chosen chosen = first_of_ladder(def.ladder, problem, device, forced);
  if (chosen.variant.empty()) fail_to_choose(def, problem, device, forced);
  return chosen;
}

// The first host variant that takes the problem, or the one that `forced` names, or the error.
template <class Problem, class Options>
const HostVariant<Problem>& choose_on_host(const Definition<Problem, Options>& def,
                                           const Problem& problem, std::string_view forced) {
  for (const auto& v : def.host)
    if ((forced.empty() || v.name == forced) && v.refusal_of(problem).empty()) return v;
  fail_to_choose(def, problem, device_info(Device::cpu()), forced);
}

}  // namespace tensorcraft::op
