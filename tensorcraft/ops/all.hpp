// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/operator.hpp"
#include "tensorcraft/ops/attention/attention.hpp"
#include "tensorcraft/ops/batch_norm/batch_norm.hpp"
#include "tensorcraft/ops/cross_entropy/cross_entropy.hpp"
#include "tensorcraft/ops/cumulative_sum/cumulative_sum.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/ops/elementwise/expression.hpp"
#include "tensorcraft/ops/embedding/embedding.hpp"
#include "tensorcraft/ops/gated_activation/gated_activation.hpp"
#include "tensorcraft/ops/gather/gather.hpp"
#include "tensorcraft/ops/gemm/gemm.hpp"
#include "tensorcraft/ops/group_norm/group_norm.hpp"
#include "tensorcraft/ops/l2_normalize/l2_normalize.hpp"
#include "tensorcraft/ops/masked_mean/masked_mean.hpp"
#include "tensorcraft/ops/norm/norm.hpp"
#include "tensorcraft/ops/pad/pad.hpp"
#include "tensorcraft/ops/permute/join.hpp"
#include "tensorcraft/ops/permute/permute.hpp"
#include "tensorcraft/ops/quantize/quantize.hpp"
#include "tensorcraft/ops/reduce/reduce.hpp"
#include "tensorcraft/ops/rope/rope.hpp"
#include "tensorcraft/ops/scatter/scatter.hpp"
#include "tensorcraft/ops/softmax/softmax.hpp"
#include "tensorcraft/ops/topk/topk.hpp"

namespace tensorcraft {

// Every operator, in the order of the index, then those that were added, in their order. The list
// stays as it is; after add_operators() another call gives a longer one.
const op::OperatorList& operators();
// Adds operators of the program's own, which live as long as the process, to what operators() and
// find_operator() give. Kind value if there is one of such a name. Returns true, so that a library
// can add its own as it is loaded:
//   const bool added = tensorcraft::add_operators(tensorcraft::op::registered(kDefinition));
bool add_operators(const op::OperatorList& added);
// By name or alias; kind key with all names if there is none.
const op::Operator& find_operator(std::string_view name);

}  // namespace tensorcraft
