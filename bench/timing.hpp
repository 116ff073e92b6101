// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/diagnose/timing.hpp"

// How cases and peers are timed, under the names of bench/.
namespace tensorcraft::bench {

using diagnose::Call;
using diagnose::is_short;
using diagnose::KernelProfile;
using diagnose::make_timed;
using diagnose::Method;
using diagnose::PerformanceProfiler;
using diagnose::Rotation;
using diagnose::Timed;

}  // namespace tensorcraft::bench
