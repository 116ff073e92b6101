// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Reads the counters of a GPU for a kernel, as Nsight Compute's command `ncu` prints them.
namespace tensorcraft::diagnose {

// Describes one launch. A counter that a GPU or a version of ncu lacks is 0.
struct KernelCounters {
  std::string kernel;       // its name
  std::string grid, block;  // as ncu writes them: "(132, 1, 1)"
  double us = 0;            // at the clock that ncu fixes, so it is no benchmark
  // Percent of what the device can: memory, caches, and the multiprocessors at their busiest unit.
  double dram = 0, l2 = 0, l1 = 0, sm = 0;
  double tensor = 0;     // cycles in which the tensor cores are busy, of those that are counted
  double occupancy = 0;  // warps that are there, of those that could be
  double waves = 0;      // blocks of the grid over those that run at once
  int registers = 0;     // of a thread
  // Why warps wait: "long_scoreboard", and how many do for each instruction that is issued.
  struct Stall {
    std::string reason;  // as ncu names it
    double warps = 0;    // that wait for it, for each instruction
  };
  std::vector<Stall> stalls = {};  // the largest first
};

// Names what holds a kernel up.
enum class Bound { dram, l2, l1, arithmetic, few_blocks, latency };
// "dram", "few_blocks", ...
std::string_view to_string(Bound bound);

// A unit that does this much of what it can, in percent, bounds a kernel: the figure that the
// guide of Nsight Compute draws the line at.
inline constexpr double kBusyPercent = 60;
// The busiest unit if it is busy; else too few blocks if they fill the device less than once; else
// latency.
Bound bound_of(const KernelCounters& counters);
// One sentence: "memory: 88 % of its bandwidth".
std::string reason_of(const KernelCounters& counters);

// Reads what `ncu --csv --page raw` writes, with its messages. Kind unsupported with what to do if
// it says that the user may not read counters, kind io with its message for another error; none if
// no kernel ran.
std::vector<KernelCounters> read_counters(std::string_view text);

// The words that ncu is started with, before a program and its arguments: counters that say what
// bounds a kernel, of the launches within a ProfiledRange, into a file.
std::vector<std::string> ncu_command(const std::string& ncu, const std::string& file);
// ncu on a search path ("/usr/bin:/bin"), else where the toolkit and Nsight Compute install it,
// the newest first.
std::optional<std::string> find_ncu(std::string_view search_path);
// Likewise for this process, or kind not_found with how to get it.
std::string require_ncu();

}  // namespace tensorcraft::diagnose
