// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/operator.hpp"
#include "tensorcraft/ops/append_kv/append_kv.hpp"
#include "tensorcraft/ops/attention/attention.hpp"
#include "tensorcraft/ops/batch_norm/batch_norm.hpp"
#include "tensorcraft/ops/causal_conv1d/causal_conv1d.hpp"
#include "tensorcraft/ops/conv2d/conv2d.hpp"
#include "tensorcraft/ops/cross_entropy/cross_entropy.hpp"
#include "tensorcraft/ops/csr/csr.hpp"
#include "tensorcraft/ops/cumulative_sum/cumulative_sum.hpp"
#include "tensorcraft/ops/depthwise_separable_conv2d/depthwise_separable_conv2d.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/ops/elementwise/expression.hpp"
#include "tensorcraft/ops/embedding/embedding.hpp"
#include "tensorcraft/ops/gated_activation/gated_activation.hpp"
#include "tensorcraft/ops/gather/gather.hpp"
#include "tensorcraft/ops/gemm/gemm.hpp"
#include "tensorcraft/ops/gemm/groups/grouped_gemm.hpp"
#include "tensorcraft/ops/group_norm/group_norm.hpp"
#include "tensorcraft/ops/l2_normalize/l2_normalize.hpp"
#include "tensorcraft/ops/masked_mean/masked_mean.hpp"
#include "tensorcraft/ops/merge_attention/merge_attention.hpp"
#include "tensorcraft/ops/moe_combine/moe_combine.hpp"
#include "tensorcraft/ops/moe_permute/moe_permute.hpp"
#include "tensorcraft/ops/moe_router/moe_router.hpp"
#include "tensorcraft/ops/mqa_logits/mqa_logits.hpp"
#include "tensorcraft/ops/norm/norm.hpp"
#include "tensorcraft/ops/packed_gemm/packed_gemm.hpp"
#include "tensorcraft/ops/pad/pad.hpp"
#include "tensorcraft/ops/paged_attention/paged_attention.hpp"
#include "tensorcraft/ops/permute/join.hpp"
#include "tensorcraft/ops/permute/permute.hpp"
#include "tensorcraft/ops/pool2d/pool2d.hpp"
#include "tensorcraft/ops/quantize/quantize.hpp"
#include "tensorcraft/ops/reduce/reduce.hpp"
#include "tensorcraft/ops/rope/rope.hpp"
#include "tensorcraft/ops/sample/sample.hpp"
#include "tensorcraft/ops/scatter/scatter.hpp"
#include "tensorcraft/ops/softmax/softmax.hpp"
#include "tensorcraft/ops/spmm/spmm.hpp"
#include "tensorcraft/ops/spmv/spmv.hpp"
#include "tensorcraft/ops/topk/topk.hpp"
#include "tensorcraft/ops/transfer_hicache/transfer_hicache.hpp"

#include <string>

namespace tensorcraft {

// Every operator, in the order of the index, then those that were added, in their order. The list
// stays as it is; after add_operators() another call gives a longer one.
const op::OperatorList& operators();
// Adds operators of the program's own, which live as long as the process, to what operators() and
// find_operator() give. Those that are there already are left alone; kind value, and none is added,
// if a name is taken by another. Safe from any thread.
void add_operators(const op::OperatorList& added);
// Loads a shared library that tensorcraft_add_operator() of CMake made, adds its operators and
// gives them. The library stays for the life of the process; a second time adds nothing. Kind
// not_found if there is no such file, value if it is no such library, was built for another
// version, or has a name that is taken.
const op::OperatorList& add_library(const std::string& path);
// By name or alias; kind key with all names if there is none.
const op::Operator& find_operator(std::string_view name);

}  // namespace tensorcraft
