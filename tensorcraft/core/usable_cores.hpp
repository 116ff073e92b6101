// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tensorcraft {

// The cores that the calling thread may run on, at least 1: in a container, or after `taskset`,
// they are fewer than the machine has.
int usable_cores();

}  // namespace tensorcraft
