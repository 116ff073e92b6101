// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/l2_normalize/l2_normalize_simt.hpp"

#include "tensorcraft/op/row_plan.h"
#include "tensorcraft/ops/l2_normalize/00_naive.cuh"
#include "tensorcraft/ops/l2_normalize/01_block.cuh"
#include "tensorcraft/ops/l2_normalize/02_in_registers.cuh"

namespace tensorcraft::kernel::l2_normalize {
namespace {

using Float = simt::AnyOf<simt::Types<float>>;
using Halves = simt::AnyOf<simt::Types<f16>, simt::Types<bf16>>;

constexpr std::array kNaive{Config{.threads = 128, .group = 1},
                            Config{.threads = 128, .group = 1, .nested = 1}};
constexpr std::array kBlock{
    Config{.threads = 128, .group = 128}, Config{.threads = 128, .group = 128, .nested = 1},
    Config{.threads = 256, .group = 256}, Config{.threads = 256, .group = 256, .nested = 1}};

constexpr Config slots(int group, int vector, int slots, bool whole, bool nested = false) {
  return {.threads = op::warp_row_threads(group, vector * slots),
          .group = group,
          .vector = vector,
          .slots = slots,
          .whole = whole,
          .nested = nested};
}

// Rows of single elements, and of 16-byte accesses.
constexpr std::array kScalar{slots(8, 1, 1, false), slots(32, 1, 1, false), slots(32, 1, 2, false),
                             slots(32, 1, 2, false, true), slots(128, 1, 12, false)};
constexpr std::array kFloats{slots(8, 4, 1, true), slots(16, 4, 1, true, true),
                             slots(32, 4, 3, true), slots(32, 4, 8, true)};
constexpr std::array kHalves{slots(8, 8, 1, false), slots(8, 8, 1, true, true),
                             slots(16, 8, 3, true), slots(32, 8, 4, true)};

}  // namespace

simt::InstanceList naive_instances() {
  return simt::instances<Params, kNaive>(
      simt::Floats{}, []<class T, Config C>(const Params& p) { naive<T, C>(p); });
}

simt::InstanceList block_instances() {
  return simt::instances<Params, kBlock>(
      simt::Floats{}, []<class T, Config C>(const Params& p) { block<T, C>(p); });
}

simt::InstanceList in_registers_instances() {
  const auto rung = []<class T, Config C>(const Params& p) { in_registers<T, C>(p); };
  return simt::concat(simt::instances<Params, kScalar>(simt::Floats{}, rung),
                      simt::instances<Params, kFloats>(Float{}, rung),
                      simt::instances<Params, kHalves>(Halves{}, rung));
}

}  // namespace tensorcraft::kernel::l2_normalize
