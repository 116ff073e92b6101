// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/checks/semiring.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/hash.hpp"
#include "tensorcraft/jit/source.hpp"
#include "tensorcraft/op/expression/text.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace tensorcraft::op {
namespace {

std::string without_spaces(std::string_view text) {
  std::string result;
  std::ranges::copy_if(text, std::back_inserter(result), [](char c) { return c != ' '; });
  return result;
}

std::string device_text(const jit::Rung& rung, const SemiringProgram& semiring) {
  const expression::Program& program = *semiring.combine;
  const std::string reduction =
      join("Reduction::", EnumNames<Reduction>::names[size_t(semiring.reduction)]);
  return join(
      "// SPDX-License-Identifier: Apache-2.0\n#pragma once\n#include \"", rung.header,
      "\"\n#include \"tensorcraft/device/expression/compiled.cuh\"\n\n",
      "namespace tensorcraft {\n\ntemplate <class Params>\nstruct CompiledSemiring {\n",
      "  const Params& p;\n\n  TC_DEVICE CompiledSemiring(const Params& params) : p(params) {}\n",
      "  TC_DEVICE float identity() const { return identity_of(", reduction, "); }\n",
      "  TC_DEVICE float reduce(float a, float b) const { return reduced(", reduction,
      ", a, b); }\n  TC_DEVICE bool adds() const { return ", reduction,
      " == Reduction::sum; }\n  TC_DEVICE float combine(float x, float a) const {\n",
      "    using namespace expression;\n    const float x0[] = {x}, x1[] = {a};\n",
      "    constexpr int i = 0;\n", expression::steps_text(program), "      return s",
      program.num_steps - 1, ";\n  }\n};\n\n}  // namespace tensorcraft\n");
}

struct KnownRungs {
  ForkSafeMutex mutex;
  std::map<std::pair<const jit::Rung*, std::string>, jit::Rung> all;
};

}  // namespace

SemiringProgram checked_semiring(std::string_view op, std::string_view combine,
                                 Reduction reduction) {
  const std::string text = without_spaces(combine);
  if (reduction == Reduction::sum && (text == "x*a" || text == "a*x")) return {};
  const expression::Operand operands[] = {
      {.name = "x", .value = DType::float32, .may_be_unused = true},
      {.name = "a", .value = DType::float32, .may_be_unused = true}};
  const std::string argument = join(op, ": combine");
  return {compile_expression(combine, operands, DType::float32, argument), reduction};
}

const jit::Rung& rung_with(const jit::Rung& rung, const SemiringProgram& semiring) {
  static constinit FirstMade<KnownRungs> known;
  const std::string text = device_text(rung, semiring);
  const std::lock_guard lock(known->mutex);
  const auto [at, is_new] = known->all.try_emplace({&rung, text}, rung);
  if (!is_new) return at->second;
  jit::Rung& made = at->second;
  made.header =
      join("tensorcraft/ops/", rung.op, "/semiring_", sha256_hex(text).substr(0, 16), ".cuh");
  jit::add_source(made.header, text);
  return made;
}

}  // namespace tensorcraft::op
