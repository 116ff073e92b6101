// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/elementwise/problem.hpp"

#include "tensorcraft/ops/elementwise/02_interpreted.cuh"

namespace tensorcraft::kernel::elementwise {
namespace {

constexpr std::array kConfigs{ExpressionConfig{}};
static_assert(int(Element::boolean) == int(DType::bool_) &&
              int(Element::bf16) == int(DType::bfloat16) && int(Element::i8) == int(DType::int8) &&
              int(Element::u8) == int(DType::uint8));

}  // namespace

simt::OperatorInstances expression_instances() {
  return {{"interpreted", simt::list<Interpreted, kConfigs>(simt::AnyOf<simt::Types<>>{})}};
}

}  // namespace tensorcraft::kernel::elementwise
