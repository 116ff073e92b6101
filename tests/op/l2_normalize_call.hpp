// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/all.hpp"

#include <gtest/gtest.h>

#include <array>

namespace tensorcraft::test {

// Calls of l2_normalize, the worked example of the documentation, through the registry.
class L2NormalizeCall : public ::testing::Test {
 protected:
  void run(const TensorView& out, const TensorView& x, std::string_view variant = {}) const {
    const std::array<op::Value, 2> options;
    operator_.run(std::span(&out, 1), {std::span(&x, 1), options, variant});
  }
  op::Explanation explain(const TensorView& out, const TensorView& x,
                          const DeviceInfo& device) const {
    const std::array<op::Value, 2> options;
    return operator_.explain(std::span(&out, 1), {std::span(&x, 1), options}, device);
  }

  const op::Operator& operator_ = find_operator("l2_normalize");
  Tensor x_{DType::float32, {1, 2}}, out_{DType::float32, {1, 2}};
};

}  // namespace tensorcraft::test
