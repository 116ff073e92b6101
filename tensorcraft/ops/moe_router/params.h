// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/base.h"

namespace tensorcraft::kernel::moe_router {

inline constexpr int kMaxExperts = 512, kMaxK = 16, kMaxGroups = 32;

enum class Scoring : int { softmax, sigmoid, sqrtsoftplus };

// Run time. Strides are in elements, of tokens and then of what a token has; bias and ids may be
// null.
struct Params {
  const void* logits;
  const float* bias;
  float* weights;
  int32_t* ids;
  int64_t tokens;
  int64_t logits_strides[2], bias_stride, weights_strides[2], ids_strides[2];
  int32_t experts, k;
  int32_t groups, group_experts, group_k;  // groups: 1 if every expert may be chosen
  Scoring scoring;
  int32_t renormalize;
  float scale;
};

// Compile time. `slots` experts are in each lane of a warp.
struct Config {
  int threads = 128;
  int slots = 1;
};

}  // namespace tensorcraft::kernel::moe_router
