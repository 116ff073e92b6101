// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/operator.hpp"

namespace tensorcraft {

// Every operator, in the order of the index.
const op::OperatorList& operators();
// By name or alias; kind key with all names where there is none.
const op::Operator& find_operator(std::string_view name);

// One function a folder: the operators it registers. Listed once more in all.cpp.
namespace ops {
op::OperatorList attention();
op::OperatorList gemm();
op::OperatorList elementwise();
op::OperatorList embedding();
op::OperatorList l2_normalize();
op::OperatorList layer_norm();
op::OperatorList rms_norm();
op::OperatorList softmax();
op::OperatorList masked_mean();
}  // namespace ops

}  // namespace tensorcraft
