// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/operator.hpp"

// A line declares ops::FOLDER(), which its folder defines, and puts what it returns into the list
// that operators() gives, in this order.
#define TC_OPERATOR_FOLDERS(X)  \
  X(append_kv)                  \
  X(attention)                  \
  X(batch_norm)                 \
  X(causal_conv1d)              \
  X(conv2d)                     \
  X(cross_entropy)              \
  X(csr)                        \
  X(cumulative_sum)             \
  X(depthwise_separable_conv2d) \
  X(elementwise)                \
  X(embedding)                  \
  X(gated_activation)           \
  X(gather)                     \
  X(gemm)                       \
  X(group_norm)                 \
  X(l2_normalize)               \
  X(masked_mean)                \
  X(merge_attention)            \
  X(moe_combine)                \
  X(moe_permute)                \
  X(moe_router)                 \
  X(mqa_logits)                 \
  X(norm)                       \
  X(packed_gemm)                \
  X(pad)                        \
  X(paged_attention)            \
  X(permute)                    \
  X(pool2d)                     \
  X(quantize)                   \
  X(reduce)                     \
  X(rope)                       \
  X(sample)                     \
  X(scatter)                    \
  X(softmax)                    \
  X(spmm)                       \
  X(spmv)                       \
  X(topk)                       \
  X(transfer_hicache)

namespace tensorcraft::ops {

#define TC_DECLARE_FOLDER(folder) op::OperatorList folder();
TC_OPERATOR_FOLDERS(TC_DECLARE_FOLDER)
#undef TC_DECLARE_FOLDER

}  // namespace tensorcraft::ops
