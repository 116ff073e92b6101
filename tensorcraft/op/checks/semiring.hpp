// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/semiring.h"
#include "tensorcraft/op/expression/language.hpp"
#include "tensorcraft/op/launch/plan.hpp"
#include "tensorcraft/op/launch/simt.hpp"
#include "tensorcraft/op/value.hpp"

#include <cstring>
#include <optional>
#include <string_view>

// The two operations of a product that a user may write.
namespace tensorcraft::op {

// A checked one; without a program it is x * a and sums.
struct SemiringProgram {
  std::optional<expression::Program> combine = {};
  Reduction reduction = Reduction::sum;
};

// Kind value or type, with the text and a caret, if `combine` is no expression of x and a.
SemiringProgram checked_semiring(std::string_view op, std::string_view combine,
                                 Reduction reduction);

// The rung with the expression in it. Device text that includes the rung's is made at its first
// use and kept.
const jit::Rung& rung_with(const jit::Rung& rung, const SemiringProgram& semiring);

// Adds the numbers of its semiring to the Params of a step.
template <class Params>
WithNumbers<Params> params_with(const Params& params, const SemiringProgram& semiring) {
  WithNumbers<Params> all{params, {}};
  static_assert(WithNumbers<Params>::kMaxNumbers == expression::kMaxNumbers);
  std::memcpy(all.numbers, semiring.combine->numbers.data(), sizeof(all.numbers));
  return all;
}
template <class Params>
WithSteps<Params> params_with_steps(const Params& params, const SemiringProgram& semiring) {
  const expression::Program& program = *semiring.combine;
  WithSteps<Params> all{params_with(params, semiring), {}, semiring.reduction, 0, 0};
  using expression::Step;
  static_assert(all.kMaxSteps == expression::Program::kMaxSteps && all.kStepBytes == sizeof(Step));
  std::memcpy(all.steps, program.steps.data(), size_t(program.num_steps) * sizeof(Step));
  all.num_numbers = uint16_t(program.num_numbers);
  all.num_steps = uint16_t(program.num_steps);
  return all;
}

// Gives step i of a plan, whose Config has the field `semiring`, what its semiring needs: it
// is compiled, or read by the kernel that the library holds.
template <class Config, class Params>
void set_semiring(Plan& plan, size_t i, const Params& params, const SemiringProgram& semiring,
                  const DeviceInfo& device) {
  Step& step = plan.steps()[i];
  const auto set = [&](Semiring how) {
    Config config;
    std::memcpy(&config, step.kernel.config.data(), sizeof(config));
    config.semiring = how;
    step.kernel.config = config_bytes(config);
  };
  if (!semiring.combine) return set(Semiring::product);
  set(Semiring::interpreted);
  if (is_held(step, device)) {
    plan.set_params(i, params_with_steps(params, semiring));
    return;
  }
  set(Semiring::compiled);
  step.kernel.rung = &rung_with(*step.kernel.rung, semiring);
  plan.set_params(i, params_with(params, semiring));
}

// The values of Config::semiring, and those of an option `reduce`.
inline constexpr std::string_view kSemirings[] = {"product", "compiled", "interpreted"};
template <>
struct EnumNames<Reduction> {
  static constexpr std::array<std::string_view, 4> names = {"sum", "max", "min", "prod"};
};

}  // namespace tensorcraft::op
