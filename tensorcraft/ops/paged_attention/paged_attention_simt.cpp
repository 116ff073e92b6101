// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/paged_attention/problem.hpp"

#include "tensorcraft/ops/paged_attention/00_naive.cuh"

namespace tensorcraft::kernel::paged_attention {
namespace {

using simt::AnyOf, simt::Types, simt::concat, simt::list;

// Types of q and of the caches.
using Any = AnyOf<Types<float, float>, Types<float, e4m3>, Types<float, int8_t>, Types<f16, f16>,
                  Types<f16, e4m3>, Types<f16, int8_t>, Types<bf16, bf16>, Types<bf16, e4m3>,
                  Types<bf16, int8_t>>;

constexpr std::array kNaive{Config{}};

}  // namespace

simt::OperatorInstances instances() { return {{"naive", list<Naive, kNaive>(Any{})}}; }

}  // namespace tensorcraft::kernel::paged_attention
