// SPDX-License-Identifier: Apache-2.0
#include "bench/regression.hpp"

#include <map>
#include <set>

namespace tensorcraft::bench {
namespace {

std::string key_of(const Row& row, const std::string& peer) {
  return row.op + ' ' + row.name + (row.cache == "warm" ? ", warm, " : ", ") +
         (row.chosen ? "chosen" : row.variant) + ", against " + peer;
}

struct Ratios {
  std::vector<std::pair<std::string, double>> all;
  std::set<std::string> failed;  // keys without the peer's name
};

Ratios ratios_of(const Results& results) {
  Ratios found;
  for (const Row& row : results.rows) {
    if (!row.is_ours()) continue;
    if (row.failed()) found.failed.insert(key_of(row, ""));
    for (const Row* peer : peers_of(row, results.rows))
      if (const double found_ratio = ratio(row, *peer); found_ratio > 0)
        found.all.emplace_back(key_of(row, peer->candidate), found_ratio);
  }
  return found;
}

}  // namespace

std::vector<Change> compare(const Results& now, const Results& before, double tolerance) {
  using enum Change::Kind;
  const Ratios current = ratios_of(now), old = ratios_of(before);
  std::map<std::string, double> known(old.all.begin(), old.all.end());
  std::vector<Change> changes;
  for (const auto& [key, value] : current.all) {
    const auto found = known.find(key);
    if (found == known.end()) {
      changes.push_back({only_now, key, 0, value});
      continue;
    }
    const bool fell = value < found->second * (1 - tolerance);
    changes.push_back({fell ? Change::Kind::fell : same, key, found->second, value});
    known.erase(found);
  }
  for (const auto& [key, value] : old.all) {
    if (!known.contains(key)) continue;
    const std::string without_peer = key.substr(0, key.rfind("against ") + 8);
    const bool broke = current.failed.contains(without_peer);
    changes.push_back({broke ? fell : only_before, key, value, 0});
  }
  return changes;
}

}  // namespace tensorcraft::bench
