// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/rung.h"

namespace tensorcraft::op {
// TRANSITION
template <class Config>
using LaunchPlan = Start<Config>;
}  // namespace tensorcraft::op
