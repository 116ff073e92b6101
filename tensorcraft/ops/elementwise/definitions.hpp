// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/elementwise/problem.hpp"

#include <utility>

// The files that define operators share these.
namespace tensorcraft::kernel::elementwise {

// Bytes of a tensor if elements that broadcast axes share are read once.
double distinct_bytes(const TensorView& t);

// Every operator that is an expression has these.
const op::Ladder<ExpressionProblem>& expression_ladder();
std::span<const op::HostVariant<ExpressionProblem>> expression_host();
op::Cost expression_cost(const ExpressionProblem& q);
// The checked call of a program, whose result has the broadcast shape of the inputs.
ExpressionProblem checked(std::string_view op, const Program& program, const TensorView& out,
                          std::span<const TensorView> inputs, const Dims& shape);
// That shape; name_of(i) is the name of input i.
template <class NameOf>
Dims broadcast_shape(std::string_view op, std::span<const TensorView> inputs,
                     const NameOf& name_of) {
  Dims shape;
  for (size_t i = 0; i < inputs.size(); ++i) try {
      shape = broadcast_shapes(shape, inputs[i].shape());
    } catch (const Error& e) {
      fail(e.kind(), op, ": ", name_of(i), ": ", e.what());
    }
  return shape;
}

// The registry lists these besides the operators of elementwise.cpp.
op::OperatorList expression_operators();  // elementwise()
op::OperatorList function_operators();    // those that are an expression of one function

}  // namespace tensorcraft::kernel::elementwise

// The typed functions of an operator whose definition is kernel::elementwise::definitions::name.
#define TC_DEFINE_UNARY(name, Options)                                                       \
  void name(const TensorView& out, const TensorView& x, const Options& options) {            \
    op::run(kernel::elementwise::definitions::name, out, {x}, options);                      \
  }                                                                                          \
  Tensor name(const TensorView& x, const Options& options) {                                 \
    return std::move(op::allocate(kernel::elementwise::definitions::name, {x}, options)[0]); \
  }
#define TC_DEFINE_BINARY(name)                                                                  \
  void name(const TensorView& out, const TensorView& a, const TensorView& b,                    \
            const ElementwiseOptions& options) {                                                \
    op::run(kernel::elementwise::definitions::name, out, {a, b}, options);                      \
  }                                                                                             \
  Tensor name(const TensorView& a, const TensorView& b, const ElementwiseOptions& options) {    \
    return std::move(op::allocate(kernel::elementwise::definitions::name, {a, b}, options)[0]); \
  }
