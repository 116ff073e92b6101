// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/elementwise/expression_simt.hpp"

#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/ops/elementwise/02_interpreted.cuh"

namespace tensorcraft::kernel::elementwise {
namespace {

constexpr std::array kConfigs{ExpressionConfig{}};
static_assert(int(Element::boolean) == int(DType::bool_) &&
              int(Element::bf16) == int(DType::bfloat16) && int(Element::i8) == int(DType::int8) &&
              int(Element::u8) == int(DType::uint8));

}  // namespace

simt::InstanceList interpreted_instances() {
  return simt::instances<InterpretedParams, kConfigs>(
      simt::AnyOf<simt::Types<>>{},
      []<ExpressionConfig C>(const InterpretedParams& p) { interpreted<C>(p); });
}

}  // namespace tensorcraft::kernel::elementwise
