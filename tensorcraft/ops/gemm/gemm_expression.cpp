// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/gemm/gemm_expression.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/hash.hpp"
#include "tensorcraft/core/nearest.hpp"
#include "tensorcraft/jit/source.hpp"
#include "tensorcraft/op/expression/operands.hpp"
#include "tensorcraft/op/expression/text.hpp"
#include "tensorcraft/op/launch/simt.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace tensorcraft::kernel::gemm {
namespace {

using Program = expression::Program;

static_assert(ExpressionParams::kMaxArrays == expression::kMaxInputs - 1 &&
              ExpressionParams::kMaxNumbers == expression::kMaxNumbers &&
              InterpretedParams::kMaxSteps == Program::kMaxSteps &&
              InterpretedParams::kStepBytes == sizeof(expression::Step));

// The elements that one access moves of neighbours in a row: as many as divide everything.
int vector_of(const TensorView& t) {
  const auto bytes = int64_t(dtype_bytes(t.dtype()));
  int64_t v = std::min<int64_t>(4, 16 / bytes);
  if (col_stride(t) != 1) return 1;
  const auto divides = [&](int64_t n) {
    if (t.shape(t.rank() - 1) % n || reinterpret_cast<uintptr_t>(t.data()) % uint64_t(n * bytes))
      return false;
    for (int i = 0; i < t.rank() - 1; ++i)
      if (t.stride(i) % n) return false;
    return true;
  };
  while (v > 1 && !divides(v)) v /= 2;
  return int(v);
}

// "      load_neighbours<4>(x1, array1 + row * p.arrays[0].row_stride + col, 1, count);"
std::string load_text(const TensorView& t, int i) {
  const std::string strides = join("p.arrays[", i - 1, "]");
  const std::string row = join("array", i, " + row * ", strides, ".row_stride");
  if (col_stride(t) == 0) return join("load_shared(x", i, ", ", row, ", count);");
  const std::string stride = col_stride(t) == 1 ? "1" : strides + ".col_stride";
  return join("load_neighbours<", vector_of(t), ">(x", i, ", ", row, " + col * ", stride, ", ",
              stride, ", count);");
}

std::string device_text(const jit::Rung& rung, const SumExpression& e) {
  std::string fields, made, loads;
  for (size_t i = 1; i <= e.arrays.size(); ++i) {
    const TensorView& t = e.arrays[i - 1];
    const std::string type = join("expression::InMemory<", jit::device_type(t.dtype()), ">");
    fields += join("  const ", type, "* array", i, ";\n");
    made += join(",\n        array", i, "(batch_entry<const ", type, ">(params, params.arrays[",
                 i - 1, "], batch))");
    loads += join("    ", type, " x", i, "[N];\n    ", load_text(t, int(i)), "\n");
  }
  return join(
      "// SPDX-License-Identifier: Apache-2.0\n#pragma once\n#include \"", rung.header,
      "\"\n#include \"tensorcraft/device/expression/compiled.cuh\"\n\n",
      "namespace tensorcraft::kernel::gemm {\n\ntemplate <Config C>\nstruct CompiledExpression {\n",
      "  const ExpressionParams& p;\n", fields,
      "\n  TC_DEVICE CompiledExpression(const ExpressionParams& params, uint32_t batch)\n",
      "      : p(params)", made, " {}\n\n  template <int N>\n",
      "  TC_DEVICE void apply(float (&x0)[N], int64_t row, int64_t col, int count) const {\n",
      "    using namespace expression;\n", loads,
      "#pragma unroll\n    for (int i = 0; i < N; ++i) {\n", expression::steps_text(e.program),
      "      x0[i] = s", e.program.num_steps - 1,
      ";\n    }\n  }\n};\n\n}  // namespace tensorcraft::kernel::gemm\n");
}

// Rungs of one file have the same text, but functions of their own.
struct KnownRungs {
  ForkSafeMutex mutex;
  std::map<std::pair<const jit::Rung*, std::string>, jit::Rung> all;
};

// A call without an epilogue has no further arguments.
void check_no_operands(const GemmOptions& o, std::span<const TensorView> arrays,
                       std::vector<std::string_view> (*keywords)()) {
  if (!o.operands.empty()) {
    const std::string_view name = o.operands[0].name;
    const std::string meant = did_you_mean(name, keywords());
    fail(ErrorKind::type, "gemm: got an unexpected argument '", name, "'",
         meant.empty() ? join("; names that are no parameter belong to an epilogue, such as "
                              "epilogue=\"x * ",
                              name, "\"")
                       : meant);
  }
  if (!arrays.empty())
    fail(ErrorKind::type, "gemm: takes 2 arrays without an epilogue, got ", arrays.size() + 2);
}

const jit::Rung& with_expression(const jit::Rung& rung, const Problem& q) {
  static constinit FirstMade<KnownRungs> known;
  const std::string text = device_text(rung, *q.expression);
  const std::lock_guard lock(known->mutex);
  const auto [at, is_new] = known->all.try_emplace({&rung, text}, rung);
  if (!is_new) return at->second;
  jit::Rung& made = at->second;
  made.header = join("tensorcraft/ops/gemm/expression_", sha256_hex(text).substr(0, 16), ".cuh");
  jit::add_source(made.header, text);
  return made;
}

}  // namespace

std::optional<SumExpression> expression_of(const GemmOptions& o, std::span<const TensorView> arrays,
                                           const Dims& shape,
                                           std::vector<std::string_view> (*keywords)()) {
  if (!o.epilogue) {
    check_no_operands(o, arrays, keywords);
    return {};
  }
  std::vector<expression::Operand> operands{{"x", DType::float32, "it is the finished sum"}};
  expression::add_operands(operands, "gemm", o.operands, arrays);
  SumExpression e{compile_expression(*o.epilogue, operands, DType::float32, "gemm: epilogue"), {}};
  for (size_t i = 0; i < arrays.size(); ++i) try {
      e.arrays.push_back(arrays[i].broadcast_to(shape));
    } catch (const Error& error) {
      fail(error.kind(), "gemm: ", op::array_name(o.operands, i), ": ", error.what());
    }
  return e;
}

ExpressionParams expression_params(const Problem& q, const Params& params) {
  const SumExpression& e = *q.expression;
  ExpressionParams p{params, {}, {}, {}};
  for (size_t i = 0; i < e.arrays.size(); ++i) p.arrays[i] = matrix(e.arrays[i]);
  std::copy(e.program.numbers.begin(), e.program.numbers.end(), p.numbers);
  return p;
}

InterpretedParams interpreted_params(const Problem& q, const Params& params) {
  const SumExpression& e = *q.expression;
  InterpretedParams p{};
  static_cast<ExpressionParams&>(p) = expression_params(q, params);
  p.num_arrays = uint8_t(e.arrays.size());
  p.num_numbers = uint8_t(e.program.num_numbers);
  p.num_steps = uint8_t(e.program.num_steps);
  p.activation = q.activation;
  std::memcpy(p.steps, e.program.steps.data(),
              size_t(e.program.num_steps) * sizeof(expression::Step));
  for (size_t i = 0; i < e.arrays.size(); ++i) p.dtypes[i] = uint8_t(e.arrays[i].dtype());
  return p;
}

// The emulator reads it if the library holds that kernel.
Expression set_expression(op::Step& step, const Problem& q, const DeviceInfo& device) {
  Config c;
  std::memcpy(&c, step.kernel.config.data(), sizeof(c));
  const auto set = [&](Expression how) {
    c.expression = how;
    step.kernel.config = config_bytes(c);
    return how;
  };
  const Expression read = set(Expression::interpreted);
  if (op::is_held(step, device)) return read;
  step.kernel.rung = &with_expression(*step.kernel.rung, q);
  return set(Expression::compiled);
}

}  // namespace tensorcraft::kernel::gemm
