// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/choice/nearest_settings.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/to_number.hpp"

#include <cmath>
#include <utility>

namespace tensorcraft::op {
namespace {

// Compares two values of one setting: numbers by their ratio, words are equal or not.
double distance(std::string_view a, std::string_view b) {
  const auto x = tensorcraft::to_number<int>(a), y = tensorcraft::to_number<int>(b);
  if (x && y && *x > 0 && *y > 0) return std::abs(std::log2(double(*x) / *y));
  return a == b ? 0 : 1;
}

}  // namespace

std::vector<std::string> nearest_settings(std::string_view wanted,
                                          std::span<const std::string> known) {
  constexpr double kMissing = 1000;  // a setting that the other text does not have
  std::vector<std::pair<double, std::string>> ranked;
  for (const std::string& text : known) {
    const std::vector<Setting> has = to_settings("", "", std::string_view(text));
    double away = 0;
    std::string words;
    for (const Setting& w : to_settings("", "", wanted)) {
      const auto same = std::ranges::find(has, w.name, &Setting::name);
      away += same == has.end() ? kMissing : distance(w.value, same->value);
      if (same != has.end()) words += join(words.empty() ? "" : ", ", w.name, "=", same->value);
    }
    if (!words.empty()) ranked.emplace_back(away, std::move(words));
  }
  std::ranges::stable_sort(ranked, {}, &std::pair<double, std::string>::first);
  std::vector<std::string> nearest;
  for (auto& [away, words] : ranked)
    if (std::ranges::find(nearest, words) == nearest.end()) nearest.push_back(std::move(words));
  return nearest;
}

void refuse_settings(std::string_view op, std::string_view option, std::string_view wanted,
                     std::string_view forced, std::string_view why, Device device,
                     std::span<const std::string> accepted) {
  std::string text = join(op, ": ", option, " ", wanted, ": ");
  text += forced.empty() ? join("no variant has it for this call on ", device)
                         : join("variant ", forced, " does not accept it: ", why);
  text += accepted.empty() ? "; leave it out" : "; the nearest that are accepted: ";
  for (const std::string& one : accepted) text += join(&one == accepted.data() ? "" : "; ", one);
  throw Error(ErrorKind::unsupported, text);
}

}  // namespace tensorcraft::op
