// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/choose.hpp"
#include "tensorcraft/op/tuning/tuned.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// How a call takes what was measured to be fastest for it.
namespace tensorcraft::op {

// Returns a call as tuning sees it: all that a choice does but addresses. Empty if only the cost
// model may choose.
template <class Problem, class Options>
std::string text_of(const Definition<Problem, Options>& def, const Call<Options>& call) {
  const auto [outputs, inputs] = tensors_of(def, call);
  std::string text = tensors_text(outputs, inputs);
  for (const auto& o : def.options) {
    if (o.free || o.parameter.kind == ParameterKind::settings) continue;
    if (!o.text) return {};  // written by hand, and then calls differ in what nothing says
    const std::string value = o.text(call.options);
    if (value == o.parameter.default_value) continue;
    if (o.forbids_tuning) return {};
    text.append(" ").append(o.parameter.name).append("=").append(value);
  }
  return text;
}

// Does the caller leave the variant and all of its Config open?
template <class Problem, class Options>
bool leaves_choice(const Definition<Problem, Options>& def, const Options& options) {
  return options.variant.empty() && std::ranges::all_of(def.options, [&](const auto& o) {
           return o.parameter.kind != ParameterKind::settings ||
                  o.text(options) == o.parameter.default_value;
         });
}

template <class Problem, class Options>
bool accepts(const Definition<Problem, Options>& def, const Problem& problem,
             const DeviceInfo& device, std::string_view variant) {
  if (runs_kernels(device.device.type))
    return !first_of_ladder(def.ladder, problem, device, variant).variant.empty();
  return std::ranges::any_of(
      def.host, [&](const auto& v) { return v.name == variant && v.refusal_of(problem).empty(); });
}

// A call's options with what was measured to be fastest.
template <class Options>
struct TunedOptions {
  Options options;
  TunedEntry entry;
};

// None if nothing was measured for the call, if the caller chooses, or if what was fastest refuses.
template <class Problem, class Options>
std::optional<TunedOptions<Options>> tuned_options(const Definition<Problem, Options>& def,
                                                   const Call<Options>& call,
                                                   const DeviceInfo& device) {
  if (!has_tuned(device, def.name) || !leaves_choice(def, call.options)) return {};
  const std::vector<VariantInfo> variants = all_variants(def);
  std::optional<TunedEntry> known = find_tuned(device, def.name, variants, text_of(def, call));
  if (!known) return {};
  const auto named = std::ranges::find(variants, known->variant, &VariantInfo::name);
  if (named == variants.end()) return {};
  TunedOptions<Options> tuned{call.options, std::move(*known)};
  tuned.options.variant = named->name;
  try {
    for (const auto& o : def.options)
      if (o.parameter.kind == ParameterKind::settings && !tuned.entry.config.empty())
        o.set(def.name, tuned.options, std::string_view(tuned.entry.config));
    const Problem problem = def.check({call.outputs, call.inputs, tuned.options});
    if (!accepts(def, problem, device, named->name)) return {};
  } catch (const Error&) {  // of the call as it is, which then says so, or of a file's text
    return {};
  }
  return tuned;
}

}  // namespace tensorcraft::op
