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
op::OperatorList cross_entropy();
op::OperatorList batch_norm();
op::OperatorList gemm();
op::OperatorList elementwise();
op::OperatorList embedding();
op::OperatorList group_norm();
op::OperatorList gated_activation();
op::OperatorList l2_normalize();
op::OperatorList layer_norm();
op::OperatorList quantize();
op::OperatorList gather();
op::OperatorList l2_normalize();
op::OperatorList layer_norm();
op::OperatorList pad();
op::OperatorList permute();
op::OperatorList rms_norm();
op::OperatorList rope();
op::OperatorList scatter();
op::OperatorList softmax();
op::OperatorList masked_mean();
op::OperatorList reduce();
op::OperatorList cumulative_sum();
op::OperatorList topk();
}  // namespace ops

}  // namespace tensorcraft
