// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/stream.hpp"
#include "tensorcraft/diagnose/tuner.hpp"
#include "tensorcraft/jit/entry.hpp"
#include "tensorcraft/op/tuning/configuration_selector.hpp"
#include "tensorcraft/op/operator.hpp"
#include "tensorcraft/op/tuning/tuning_database.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tensorcraft::diagnose {

// The arrays of a call that is tuned, in the memory of its device. Outputs are written many times.
struct TuningArrays {
  // In the operator's order.
  std::span<const TensorView> outputs, inputs;
  std::span<const op::Value> options;  // without a value for the operator's settings
};

// How a session is run.
struct TuneSettings {
  TuningRules rules = {};  // when it ends
  bool again = false;      // forget what is known of the call, and measure anew
  // After each iteration.
  std::function<void(const AdaptivePerformanceTuner&)> progress = {};
  AdaptivePerformanceTuner::Say say = {};  // what the tuner says
};

// The result of a session.
struct TuneReport {
  op::TunedRow row;       // as the database has it
  TuningCandidate model;  // what the cost model chooses
  std::string problem;    // "4096x4096x4096"
  std::string end;        // why the session is over; "known": nothing was measured
  double tflops = 0;      // of the fastest
  std::vector<TuningIteration> iterations = {};  // of this session, and those before it
};

// The ways to compute a call that an explanation names, made without what is tuned: the cost
// model's choice, then the others. A rung without predicted times is expected to be a twentieth
// slower than the one above it, and a product's tile that ConfigurationSelector's rule names a
// tenth of the rule's confidence faster than predicted. `reference` is what others are held
// against, and is left out beside any of them.
std::vector<TuningCandidate> tuning_candidates(const op::Explanation& e,
                                               const op::SelectedConfiguration* rule = nullptr);

// The kernels that a call compiles for each candidate, one candidate after the other; none on the
// host.
std::vector<jit::KernelKey> tuning_kernels(const op::Operator& op, const TuningArrays& arrays,
                                           std::span<const TuningCandidate> candidates,
                                           const DeviceInfo& device);

// Finds the fastest variant and Config of a call by measuring on arrays of it, of which there may
// be several copies that take turns. What was measured is in the device's database, so a session
// that was cut off goes on, and what is known is not measured again; from the next call on the
// process takes it. Without a folder for the database only the process keeps it. On a GPU kernels
// are compiled before they are measured, as many at a time as there are cores. Kind unsupported
// for a call whose options leave the choice to the cost model, kind value if it fixes a part of it.
TuneReport tune(const op::Operator& op, std::span<const TuningArrays> copies, StreamRef stream,
                const TuneSettings& settings = {});

}  // namespace tensorcraft::diagnose
