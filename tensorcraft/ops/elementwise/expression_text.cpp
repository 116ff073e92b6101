// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/hash.hpp"
#include "tensorcraft/jit/source.hpp"
#include "tensorcraft/op/expression/text.hpp"
#include "tensorcraft/op/choice/ladder.hpp"
#include "tensorcraft/ops/elementwise/problem.hpp"

#include <algorithm>
#include <map>
#include <mutex>

namespace tensorcraft::kernel::elementwise {
namespace {

std::string inputs_text(const Program& p) {
  std::string fields, loads;
  for (int i = 0; i < p.num_inputs; ++i) {
    const std::string type = join("InMemory<", jit::device_type(p.inputs[size_t(i)]), ">");
    fields += join("    AlignedVector<", type, ", N> x", i, ";\n");
    loads += join("      x", i, " = load_operand<N, (kShared >> ", i, " & 1) != 0, ", type, ">(p, ",
                  i, ", o.at[", i + 1, "], policy);\n");
  }
  return join(fields,
              "\n    TC_DEVICE void load(const ExpressionParams& p, const Offsets<kTensors>& o,",
              "\n                        uint64_t policy) {\n", loads, "    }\n");
}

struct KnownText {
  Program program;
  ExpressionRungs rungs;
};
struct KnownTexts {
  ForkSafeMutex mutex;
  std::map<std::string, KnownText> all;
};
KnownTexts& known_texts() {
  static constinit FirstMade<KnownTexts> texts;
  return *texts;
}

}  // namespace

std::string device_text(const Program& p) {
  size_t widest = dtype_bytes(p.out());
  for (int i = 0; i < p.num_inputs; ++i)
    widest = std::max(widest, dtype_bytes(p.inputs[size_t(i)]));
  return join("// SPDX-License-Identifier: Apache-2.0\n#pragma once\n",
              "#include \"tensorcraft/ops/elementwise/03_fused.cuh\"\n\n",
              "namespace tensorcraft::kernel::elementwise {\n\nstruct Expression {\n  using Out = ",
              jit::device_type(p.out()), ";\n  static constexpr int kTensors = ", p.num_inputs + 1,
              ", kWidest = ", widest, ";\n  template <int N, int kShared>\n  struct Inputs {\n",
              inputs_text(p),
              "    TC_DEVICE Out compute(const ExpressionParams& p, int i) const {\n",
              steps_text(p), "      return s", p.num_steps - 1, ";\n    }\n  };\n};\n\n",
              "using Fused = FusedExpression<Expression>;\n",
              "using Strided = StridedExpression<Expression>;\n\n",
              "}  // namespace tensorcraft::kernel::elementwise\n");
}

const ExpressionRungs& rungs_of(const Program& program) {
  const std::string text = device_text(program);
  KnownTexts& known = known_texts();
  const std::lock_guard lock(known.mutex);
  const auto [at, is_new] = known.all.try_emplace(text);
  KnownText& one = at->second;
  if (!is_new) return one.rungs;
  const std::string file = join("expression_", sha256_hex(text).substr(0, 16), ".cuh");
  const auto rung = [&](std::string_view name) -> const jit::Rung& {
    return op::make_rung("elementwise", name, file, kExpressionFields, "ExpressionConfig");
  };
  one = {program, {&rung("fused"), &rung("strided")}};
  jit::add_source(one.rungs.fused->header, text);
  return one.rungs;
}

const Program* program_of_header(std::string_view header) {
  KnownTexts& known = known_texts();
  const std::lock_guard lock(known.mutex);
  for (const auto& [text, one] : known.all)
    if (one.rungs.fused->header == header) return &one.program;
  return nullptr;
}

}  // namespace tensorcraft::kernel::elementwise
