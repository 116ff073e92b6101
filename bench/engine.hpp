// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "bench/case.hpp"
#include "bench/results.hpp"
#include "bench/runner.hpp"
#include "tensorcraft/cuda/device.hpp"

#include <functional>
#include <string>
#include <vector>

namespace tensorcraft::bench {

struct Settings {
  Device device;                   // cpu, or a GPU
  std::string variant;             // empty: what a call takes; "all"; or a name
  std::vector<std::string> peers;  // names; "all": those that have the operator; "none"
  bool warm = false;               // the same arrays each time
  double warmup_s = 1;             // before the first case; a tenth of it before each other
  double seconds = 0.3;            // about how long a candidate is measured
  int repetitions = 0;             // 0: as many as that allows, 5 to 100
};

// How far a run is.
struct Progress {
  size_t done = 0, total = 0;       // cases
  double fraction = 0;              // of everything
  std::string what;                 // that is measured now
  const Results* so_far = nullptr;  // where a case begins: what those before it gave
};

// Facts of the machine and the device, and how it is timed, for the head of the results.
Results describe(const Settings& settings, std::string title);

// Times every case: rows of our variants and of the peers, in one interleaved run a case. What
// fails becomes a row with its error, and the others go on. A case of an operator that this build
// lacks is skipped, and listed so. Kind value for settings that name a device, peer or variant that
// does not exist; kind unsupported without a runner.
Results run(const std::vector<Case>& cases, const Settings& settings, Runner& runner,
            const std::function<void(const Progress&)>& progress);

}  // namespace tensorcraft::bench
