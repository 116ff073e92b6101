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

// Every operator, in the order of the index.
const op::OperatorList& operators();
// By name or alias; kind key with all names if there is none.
const op::Operator& find_operator(std::string_view name);

}  // namespace tensorcraft
