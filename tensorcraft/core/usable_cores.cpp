// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/usable_cores.hpp"

#include "tensorcraft/core/first_made.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

namespace tensorcraft {
namespace {

namespace fs = std::filesystem;

// Reads one group's quota: "cpu.max" of version 2 has quota and period in microseconds, version 1
// has a file for each. No number, or one below 0, is no quota.
double quota_of(const fs::path& group) {
  double quota = -1, period = 0;
  if (!(std::ifstream(group / "cpu.max") >> quota >> period)) {
    std::ifstream(group / "cpu.cfs_quota_us") >> quota;
    std::ifstream(group / "cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? quota / period : std::numeric_limits<double>::infinity();
}

// The least of a group and those above it. A container may see only its own group, as the top of
// the tree, but the path that the machine knows it by: folders that are not there have no quota.
double least_quota(const fs::path& top, const fs::path& group) {
  double least = quota_of(top);
  fs::path folder = top;
  for (const fs::path& name : group.relative_path())
    least = std::min(least, quota_of(folder /= name));
  return least;
}

// "cpu,cpuacct" names cpu.
bool has_cpu(const std::string& controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

}  // namespace

std::optional<double> cgroup_cores(const fs::path& root) {
  const fs::path top = root / "sys/fs/cgroup";
  double least = std::numeric_limits<double>::infinity();
  std::ifstream groups(root / "proc/self/cgroup");
  // "0::/path" is of version 2, "4:cpu,cpuacct:/path" of version 1.
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty())
      least = std::min({least, least_quota(top, group), least_quota(top / "unified", group)});
    else if (has_cpu(controllers))
      least =
          std::min({least, least_quota(top / controllers, group), least_quota(top / "cpu", group)});
  }
  if (std::isinf(least)) return std::nullopt;
  return least;
}

int usable_cores() {
  using Quota = std::optional<double>;
  static constinit FirstMade<const Quota, [] { return new Quota(cgroup_cores()); }> found;
  const Quota quota = *found;
  cpu_set_t set;
  const int cores = sched_getaffinity(0, sizeof set, &set) == 0
                        ? CPU_COUNT(&set)
                        : int(std::thread::hardware_concurrency());
  return std::max(1, quota ? int(std::min(double(cores), std::ceil(*quota))) : cores);
}

}  // namespace tensorcraft
