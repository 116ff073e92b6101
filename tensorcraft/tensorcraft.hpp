// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything a user of the library includes.
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/version.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/launch/trace.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"
#include "tensorcraft/runtime/safetensors/file.hpp"
#include "tensorcraft/runtime/safetensors/lazy_weights.hpp"
