// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/diagnose/counters.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <utility>

#include <unistd.h>

namespace tensorcraft::diagnose {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStall = "smsp__average_warps_issue_stalled_";
constexpr std::string_view kStallEnd = "_per_issue_active.ratio";
constexpr std::string_view kTensor[] = {"sm__pipe_tensor", "sm__inst_executed_pipe_tensor"};
constexpr std::string_view kOfActive = ".pct_of_peak_sustained_active";

using Row = std::vector<std::string>;

// The cells of a line in quotes; a quote within one is written twice.
Row cells_of(std::string_view line) {
  Row cells;
  std::string cell;
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"')
      cell += line[++i];
    else if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == ',' && !quoted)
      cells.push_back(std::exchange(cell, {}));
    else
      cell += line[i];
  }
  cells.push_back(std::move(cell));
  return cells;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// "1,234.5"; what is no number, as "n/a", is 0.
double number_of(std::string text) {
  std::erase(text, ',');
  const double value = std::strtod(text.c_str(), nullptr);
  return std::isfinite(value) ? value : 0;
}

double microseconds(double value, std::string_view unit) {
  if (unit.starts_with("n")) return value / 1e3;
  if (unit.starts_with("u")) return value;
  if (unit.starts_with("m")) return value * 1e3;
  return value * 1e6;
}

bool is_tensor(std::string_view metric) {
  return metric.ends_with(kOfActive) &&
         std::ranges::any_of(kTensor, [&](auto prefix) { return metric.starts_with(prefix); });
}

// Puts a cell where its column says.
void take(KernelCounters& k, std::string_view column, std::string_view unit,
          const std::string& cell) {
  static const std::map<std::string_view, double KernelCounters::*> kNumbers{
      {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", &KernelCounters::dram},
      {"lts__throughput.avg.pct_of_peak_sustained_elapsed", &KernelCounters::l2},
      {"l1tex__throughput.avg.pct_of_peak_sustained_active", &KernelCounters::l1},
      {"sm__throughput.avg.pct_of_peak_sustained_elapsed", &KernelCounters::sm},
      {"sm__warps_active.avg.pct_of_peak_sustained_active", &KernelCounters::occupancy},
      {"launch__waves_per_multiprocessor", &KernelCounters::waves}};
  if (column == "Kernel Name") k.kernel = cell;
  if (column == "Grid Size") k.grid = cell;
  if (column == "Block Size") k.block = cell;
  const double value = number_of(cell);
  if (const auto found = kNumbers.find(column); found != kNumbers.end()) k.*found->second = value;
  if (column == "gpu__time_duration.sum") k.us = microseconds(value, unit);
  if (column == "launch__registers_per_thread") k.registers = int(value);
  if (is_tensor(column)) k.tensor = std::max(k.tensor, value);
  if (column.starts_with(kStall) && column.ends_with(kStallEnd)) {
    column.remove_prefix(kStall.size());
    column.remove_suffix(kStallEnd.size());
    if (column != "selected" && value > 0) k.stalls.push_back({std::string(column), value});
  }
}

KernelCounters counters_of(const Row& head, const Row& units, const Row& row) {
  KernelCounters k;
  for (size_t i = 0; i < std::min({head.size(), units.size(), row.size()}); ++i)
    take(k, head[i], units[i], row[i]);
  std::ranges::stable_sort(k.stalls, std::greater(), &KernelCounters::Stall::warps);
  return k;
}

void refuse_error(std::string_view line) {
  if (!line.starts_with("==ERROR==")) return;
  if (line.find("ERR_NVGPUCTRPERM") != line.npos)
    fail(ErrorKind::unsupported,
         "ncu: this user may not read the GPU's counters; run as root, or let the driver allow it: "
         "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, then load it "
         "anew; a container needs the capability SYS_ADMIN");
  fail(ErrorKind::io, "ncu: ", line.substr(std::min(line.find_first_not_of(" =", 9), line.size())));
}

// In words, with what helps; empty if it is not known.
std::string_view meaning_of(std::string_view stall) {
  static const std::map<std::string_view, std::string_view> kMeanings{
      {"long_scoreboard", "loads from memory: more of them in flight, or data nearer by"},
      {"short_scoreboard", "shared memory or special functions"},
      {"barrier", "other warps of the block, at a barrier: more or smaller blocks"},
      {"gmma", "products of the tensor cores: deeper pipelines"},
      {"math_pipe_throttle", "an arithmetic unit that all want at once"},
      {"mio_throttle", "the queue of shared memory: wider accesses"},
      {"lg_throttle", "the queue of memory accesses: fewer and wider ones"},
      {"tex_throttle", "the queue of the texture unit: fewer and wider accesses"},
      {"membar", "a memory fence"},
      {"no_instruction", "instructions: shorter code"},
      {"wait", "the fixed latency of instructions: more warps or independent work"},
      {"not_selected", "other warps, which issue instead"},
      {"drain", "stores at the end of a block"},
      {"sleeping", "a sleep"},
      {"branch_resolving", "branches"},
      {"imc_miss", "constants that are in no cache"}};
  const auto found = kMeanings.find(stall);
  return found == kMeanings.end() ? std::string_view() : found->second;
}

std::string percent(double value) { return join(std::lround(value), " %"); }

// Versions in the folders' names, the newest first: "2025.3.1" before "2024.1.0".
std::vector<std::string> installed_places() {
  std::vector<std::string> places;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/opt/nvidia/nsight-compute", error))
    places.push_back(entry.path().string());
  std::ranges::sort(places, std::greater());
  places.insert(places.begin(), "/usr/local/cuda/bin");
  return places;
}

std::optional<std::string> program_in(const std::string& folder) {
  std::string path = folder + "/ncu";
  std::error_code error;
  if (folder.empty() || !fs::is_regular_file(path, error) || access(path.c_str(), X_OK) != 0)
    return {};
  return path;
}

}  // namespace

std::string_view to_string(Bound bound) {
  switch (bound) {
    case Bound::dram:
      return "dram";
    case Bound::l2:
      return "l2";
    case Bound::l1:
      return "l1";
    case Bound::arithmetic:
      return "arithmetic";
    case Bound::few_blocks:
      return "few_blocks";
    case Bound::latency:
      break;
  }
  return "latency";
}

Bound bound_of(const KernelCounters& k) {
  const std::pair<Bound, double> units[] = {
      {Bound::dram, k.dram}, {Bound::l2, k.l2}, {Bound::l1, k.l1}, {Bound::arithmetic, k.sm}};
  const auto busiest = std::ranges::max_element(units, {}, &std::pair<Bound, double>::second);
  if (busiest->second >= kBusyPercent) return busiest->first;
  return k.waves > 0 && k.waves < 1 ? Bound::few_blocks : Bound::latency;
}

std::string reason_of(const KernelCounters& k) {
  switch (bound_of(k)) {
    case Bound::dram:
      return "memory: " + percent(k.dram) + " of its bandwidth";
    case Bound::l2:
      return "the L2 cache: " + percent(k.l2) + " of its throughput";
    case Bound::l1:
      return "L1 and shared memory: " + percent(k.l1) + " of their throughput";
    case Bound::arithmetic:
      return join("arithmetic: ", percent(k.sm), " of what the multiprocessors can",
                  k.tensor > 0 ? ", tensor cores busy " + percent(k.tensor) : "");
    case Bound::few_blocks:
      return "too few blocks: they fill " + percent(100 * k.waves) + " of the device";
    case Bound::latency:
      break;
  }
  std::string text =
      "latency: no unit is busy, " + percent(k.occupancy) + " of the warps that fit are there";
  if (k.stalls.empty()) return text;
  const std::string& reason = k.stalls[0].reason;
  const std::string_view meaning = meaning_of(reason);
  return text + "; they wait most for " +
         (meaning.empty() ? reason : join(meaning, " (", reason, ")"));
}

std::vector<KernelCounters> read_counters(std::string_view text) {
  std::vector<KernelCounters> all;
  Row head, units;
  for (const std::string& line : lines_of(text)) {
    refuse_error(line);
    if (!line.starts_with('"')) continue;
    Row row = cells_of(line);
    if (row[0] == "ID") {
      head = std::move(row);
      units.clear();
    } else if (row[0].empty()) {
      units = std::move(row);
    } else if (!head.empty()) {
      all.push_back(counters_of(head, units, row));
    }
  }
  return all;
}

std::vector<std::string> ncu_command(const std::string& ncu, const std::string& file) {
  std::vector<std::string> words{ncu,   "--csv",      "--page", "raw", "--profile-from-start",
                                 "off", "--log-file", file};
  for (const char* section :
       {"SpeedOfLight", "ComputeWorkloadAnalysis", "LaunchStats", "Occupancy", "WarpStateStats"}) {
    words.emplace_back("--section");
    words.emplace_back(section);
  }
  return words;
}

std::optional<std::string> find_ncu(std::string_view search_path) {
  while (!search_path.empty()) {
    const size_t end = std::min(search_path.find(':'), search_path.size());
    if (auto found = program_in(std::string(search_path.substr(0, end)))) return found;
    search_path.remove_prefix(std::min(end + 1, search_path.size()));
  }
  for (const std::string& folder : installed_places())
    if (auto found = program_in(folder)) return found;
  return {};
}

std::string require_ncu() {
  if (auto found = find_ncu(config().search_path)) return *found;
  fail(ErrorKind::not_found,
       "there is no ncu, the command of NVIDIA Nsight Compute, which reads the counters of a GPU: "
       "not on PATH, in /usr/local/cuda/bin or in /opt/nvidia/nsight-compute. It comes with the "
       "CUDA toolkit, as the package nsight-compute of NVIDIA's apt repository, and from "
       "https://developer.nvidia.com/nsight-compute");
}

}  // namespace tensorcraft::diagnose
