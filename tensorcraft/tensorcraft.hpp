// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything a user of the library includes.
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/version.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/trace.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/attention/attention.hpp"
#include "tensorcraft/ops/gemm/gemm.hpp"
#include "tensorcraft/ops/elementwise/elementwise.hpp"
#include "tensorcraft/ops/embedding/embedding.hpp"
#include "tensorcraft/ops/l2_normalize/l2_normalize.hpp"
#include "tensorcraft/ops/layer_norm/layer_norm.hpp"
#include "tensorcraft/ops/rms_norm/rms_norm.hpp"
#include "tensorcraft/ops/softmax/softmax.hpp"
#include "tensorcraft/ops/masked_mean/masked_mean.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"
#include "tensorcraft/runtime/safetensors/file.hpp"
