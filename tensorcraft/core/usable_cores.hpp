// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <optional>

namespace tensorcraft {

// The cores that the calling thread may run on, at least 1: in a container, or after `taskset`,
// they are fewer than the machine has. A CPU quota counts, rounded up to whole cores: 0.5 and 1
// give 1, 1.5 gives 2. The quota is read once.
int usable_cores();

// The least CPU quota, in cores, of the process's control groups (cgroup 1 and 2) and of the groups
// that those lie in; none if no group has one. `root` stands for "/", for tests.
std::optional<double> cgroup_cores(const std::filesystem::path& root = "/");

}  // namespace tensorcraft
