// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/choice/choose.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/nearest.hpp"

#include <algorithm>
#include <string>

namespace tensorcraft::op {

void no_variant(std::string_view op, std::string_view forced,
                std::span<const Considered> considered) {
  std::string text(op);
  if (forced.empty())
    text.append(": no variant accepts this problem");
  else
    text.append(": variant ").append(forced).append(" does not accept this problem");
  for (const Considered& c : considered) {
    if (!forced.empty() && c.variant.name != forced && c.variant.alias != forced) continue;
    text.append("\n  ").append(c.variant.name).append(": ").append(c.reason);
  }
  throw Error(ErrorKind::unsupported, text);
}

namespace {

[[noreturn]] void unknown_variant(std::string_view op, std::string_view forced,
                                  std::span<const VariantInfo> variants) {
  std::vector<std::string_view> names;
  for (const VariantInfo& v : variants)
    if (std::ranges::find(names, v.name) == names.end()) names.push_back(v.name);
  std::string all;
  for (const auto n : names) all.append(all.empty() ? "" : ", ").append(n);
  fail(ErrorKind::value, op, ": no variant is named \"", forced, "\"; there are ", all,
       did_you_mean(forced, names));
}

}  // namespace

void add_forced(std::vector<Considered>& all, std::span<const VariantInfo> variants,
                std::string_view op, std::string_view forced, Device device) {
  const auto is_forced = [&](const VariantInfo& v) {
    return v.name == forced || (!v.alias.empty() && v.alias == forced);
  };
  const auto named = std::ranges::find_if(variants, is_forced);
  if (named == variants.end()) unknown_variant(op, forced, variants);
  if (std::ranges::any_of(all, is_forced, &Considered::variant)) return;
  const bool needs_gpu = named->device == DeviceType::cuda;
  all.push_back(
      {*named, false,
       join("runs on ", named->device, ", and these tensors are on ", device,
            needs_gpu ? "; device \"simt\" runs it without a GPU" : "; move them to the CPU"),
       std::nullopt});
}

}  // namespace tensorcraft::op
