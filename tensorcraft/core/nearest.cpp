// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/nearest.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace tensorcraft {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; }

// How many letters must be put in, left out, replaced or exchanged with their neighbour.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> two_back(b.size() + 1), back(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) now[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    two_back = std::exchange(back, now);
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      now[j] = std::min({back[j] + 1, now[j - 1] + 1, back[j - 1] + !same});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1]))
        now[j] = std::min(now[j], two_back[j - 2] + 1);
    }
  }
  return now[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  constexpr size_t kLongest = 64;  // what is longer is no slip of a name
  if (word.size() > kLongest) return {};
  std::string_view best;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    const size_t edits = distance(word, candidate);
    if (edits < least && edits < candidate.size()) {
      best = candidate;
      least = edits;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view best = nearest(word, known);
  return best.empty() ? std::string() : "; did you mean " + std::string(best) + '?';
}

}  // namespace tensorcraft
