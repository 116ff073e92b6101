// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/expression/text.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/jit/entry.hpp"
#include "tensorcraft/op/expression/operation_names.hpp"

#include <string_view>

namespace tensorcraft::expression {
namespace {

// Returns the type in which device text computes a step: floats in float32, truth as integers.
std::string_view computed_in(const Program& p, const Step& s) {
  if (!s.integer) return "float";
  if (Operation(s.operation) >= Operation::equal)
    return p.slot_type(s.a) == DType::int64 || p.slot_type(s.b) == DType::int64 ? "int64_t"
                                                                                : "int32_t";
  return DType(s.dtype) == DType::int64 ? "int64_t" : "int32_t";
}

std::string slot_text(const Program& p, int slot) {
  // Any byte but 0 is true.
  if (slot < kFirstNumber)
    return p.slot_type(slot) == DType::bool_ ? join("bool(x", slot, "[i])")
                                             : join("x", slot, "[i]");
  if (slot >= kFirstStep) return join("s", slot - kFirstStep);
  const int i = slot - kFirstNumber;
  const DType dtype = p.slot_type(slot);
  return join("number<", is_floating(dtype) ? "float" : "int64_t", ">(p, ", i, ")");
}

std::string step_text(const Program& p, const Step& s) {
  const auto operation = Operation(s.operation);
  const std::string_view out = jit::device_type(DType(s.dtype));
  const std::string a = slot_text(p, s.a), b = slot_text(p, s.b);
  if (operation == Operation::astype) return join("convert_element<", out, ">(", a, ")");
  if (operation == Operation::where)
    return join("chosen<", out, ">(", a, " != 0, ", b, ", ", slot_text(p, s.c), ")");
  return join("step<Operation::", word(operation), ", ", computed_in(p, s), ", ", out, ">(", a,
              ", ", num_inputs(operation) > 1 || s.b != s.a ? b : "0.0f", ")");
}

}  // namespace

std::string steps_text(const Program& p) {
  std::string steps;
  for (int i = 0; i < p.num_steps; ++i)
    steps += join("      const ", jit::device_type(DType(p.steps[size_t(i)].dtype)), " s", i, " = ",
                  step_text(p, p.steps[size_t(i)]), ";\n");
  return steps;
}

}  // namespace tensorcraft::expression
