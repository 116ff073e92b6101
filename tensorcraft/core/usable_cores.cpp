// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/usable_cores.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace tensorcraft {

int usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, int(std::thread::hardware_concurrency()));
}

}  // namespace tensorcraft
