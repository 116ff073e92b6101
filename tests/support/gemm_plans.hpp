// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/all.hpp"

#include <vector>

namespace tensorcraft::test {

// Explains a product on a GPU that need not be here.
inline op::Explanation explain_on(const DeviceInfo& device, DType dtype, const Dims& a,
                                  const Dims& b, const Dims& d, bool allow_tf32 = false,
                                  bool batch_invariant = false, std::string_view gated = {}) {
  alignas(16) static std::byte memory[16];
  const std::vector<TensorView> inputs{{memory, dtype, a}, {memory, dtype, b}};
  // Explaining reads no memory, so the output may be anywhere apart.
  const std::vector<TensorView> outputs{{reinterpret_cast<void*>(uintptr_t(1) << 46), dtype, d}};
  const op::Operator& op = find_operator("gemm");
  const auto& options = op.description().options;
  std::vector<op::Value> values(options.size());
  for (size_t i = 0; i < options.size(); ++i) {
    if (options[i].name == "allow_tf32") values[i] = allow_tf32;
    if (options[i].name == "batch_invariant") values[i] = batch_invariant;
    if (options[i].name == "gated" && !gated.empty()) values[i] = gated;
  }
  return op.explain(outputs, {inputs, values}, device);
}
inline op::Explanation explain_on(const char* arch, DType dtype, const Dims& a, const Dims& b,
                                  const Dims& d, bool allow_tf32 = false,
                                  bool batch_invariant = false, std::string_view gated = {}) {
  return explain_on(device_info_of_arch(arch), dtype, a, b, d, allow_tf32, batch_invariant, gated);
}

// The row of a variant.
inline const op::Considered& row_of(const op::Explanation& e, std::string_view variant) {
  for (const auto& row : e.variants)
    if (row.variant.name == variant) return row;
  fail(ErrorKind::internal, "gemm has no variant ", variant);
}

}  // namespace tensorcraft::test
