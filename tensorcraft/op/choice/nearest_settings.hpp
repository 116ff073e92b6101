// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/choose.hpp"
#include "tensorcraft/op/value.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Tells a call that no variant has its settings (`config` of gemm).
namespace tensorcraft::op {

// Finds in each text of `known` the settings that `wanted` names, "tile_m=64, stages=3": the
// nearest first, none twice.
std::vector<std::string> nearest_settings(std::string_view wanted,
                                          std::span<const std::string> known);
// The error, kind unsupported. why: of the variant that the call names; empty: it names none.
[[noreturn]] void refuse_settings(std::string_view op, std::string_view option,
                                  std::string_view wanted, std::string_view forced,
                                  std::string_view why, Device device,
                                  std::span<const std::string> accepted);

// The settings of every Config that a variant could have for a problem.
template <class Problem, class Options>
std::vector<std::string> settings_of_variants(const Definition<Problem, Options>& def,
                                              const Problem& problem, const DeviceInfo& device,
                                              std::string_view forced) {
  std::vector<std::string> all;
  for (const Considered& c : consider(def, problem, device)) {
    if (!c.accepted || (!forced.empty() && c.variant.name != forced && c.variant.alias != forced))
      continue;
    for (const LadderItem* item : def.ladder.items)
      if (item->info.name == c.variant.name && item->option)
        all.push_back(item->option(c.plan->main().kernel.config));
    for (const Weighed& w : c.candidates) all.push_back(w.option);
  }
  return all;
}

// Fails if the call would be accepted without what it fixes of a Config.
template <class Problem, class Options>
void check_settings(const Definition<Problem, Options>& def, const Call<Options>& call,
                    const Problem& problem, const DeviceInfo& device) {
  constexpr size_t kMost = 3;
  const std::string_view forced = call.options.variant;
  for (const auto& o : def.options) {
    if (o.parameter.kind != ParameterKind::settings) continue;
    const std::string wanted = o.text(call.options);
    if (wanted == o.parameter.default_value) continue;
    Options options = call.options;
    const auto problem_with = [&](std::string_view settings) {
      o.set(def.name, options, settings);
      return def.check({call.outputs, call.inputs, options});
    };
    const auto known = settings_of_variants(def, problem_with({}), device, forced);
    if (known.empty()) continue;
    std::vector<std::string> accepted;
    for (const std::string& settings : nearest_settings(wanted, known))
      if (accepted.size() < kMost &&
          !first_of_ladder(def.ladder, problem_with(settings), device, forced).variant.empty())
        accepted.push_back(settings);
    std::string why;
    for (const Considered& c : consider(def, problem, device))
      if (!forced.empty() && (c.variant.name == forced || c.variant.alias == forced))
        why = c.reason;
    refuse_settings(def.name, o.parameter.name, wanted, forced, why, device.device, accepted);
  }
}

}  // namespace tensorcraft::op
