// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "bench/case.hpp"
#include "tensorcraft/core/device.hpp"
#include "tensorcraft/diagnose/tune.hpp"

namespace tensorcraft::bench {

// Tunes a case on arrays of its own, made as for timing it: copies take turns, so that no call
// finds its operands in a cache. Throws what diagnose::tune() does, and what the case itself does.
diagnose::TuneReport tune_case(const Case& c, Device device,
                               const diagnose::TuneSettings& settings);

}  // namespace tensorcraft::bench
