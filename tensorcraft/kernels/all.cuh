// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every launcher. A header of one operator alone compiles faster.
#include "tensorcraft/kernels/attention.cuh"
#include "tensorcraft/kernels/elementwise.cuh"
#include "tensorcraft/kernels/embedding.cuh"
#include "tensorcraft/kernels/gemm.cuh"
#include "tensorcraft/kernels/gemm_interface.cuh"
#include "tensorcraft/kernels/l2_normalize.cuh"
#include "tensorcraft/kernels/layer_norm.cuh"
#include "tensorcraft/kernels/masked_mean.cuh"
#include "tensorcraft/kernels/rms_norm.cuh"
#include "tensorcraft/kernels/softmax.cuh"
