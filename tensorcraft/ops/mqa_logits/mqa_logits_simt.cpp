// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/mqa_logits/problem.hpp"

#include "tensorcraft/ops/mqa_logits/00_naive.cuh"
#include "tensorcraft/ops/mqa_logits/01_tensor_core.cuh"

namespace tensorcraft::kernel::mqa_logits {
namespace {

using simt::AnyOf, simt::Types;

using Any = AnyOf<Types<float>, Types<f16>, Types<bf16>, Types<e4m3>>;
using Short = AnyOf<Types<f16>, Types<bf16>, Types<e4m3>>;

constexpr std::array kNaive{Config{.threads = 128}};
constexpr std::array kTensorCore{Config{.spans = 1}, Config{.spans = 2}, Config{.spans = 4}};
constexpr std::array kFewKeys{Config{.spans = 5}};  // 16 of a warp

}  // namespace

simt::OperatorInstances instances() {
  return {{"naive", simt::list<Naive, kNaive>(Any{})},
          {"tensor_core", simt::concat(simt::list<TensorCore, kTensorCore>(Short{}),
                                       simt::list<TensorCore, kFewKeys>(simt::Bf16{}))}};
}

}  // namespace tensorcraft::kernel::mqa_logits
