// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/operator.hpp"

// What the registry lists besides the operators of elementwise.cpp. Objects are leaked.
namespace tensorcraft::kernel::elementwise {

op::OperatorList expression_operators();  // elementwise()
op::OperatorList function_operators();    // those that are an expression of one function

}  // namespace tensorcraft::kernel::elementwise
