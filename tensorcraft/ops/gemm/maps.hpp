// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/plan.hpp"
#include "tensorcraft/ops/gemm/plan.h"

#include <cstring>

namespace tensorcraft::kernel::gemm {

// Does the copy engine serve a kernel?
constexpr bool has_maps(const Config& c) {
  return c.cluster_m * c.cluster_n > 1 || c.consumers > 0;
}

// The tensor maps that the kernel of a plan's first step reads, for the tile that its Config says.
struct Maps {
  TensorMap a, b, d;
};
Maps maps_of(const op::Step& step, const Params& params, const Given& given,
             const DeviceInfo& device);

// Makes `own` the argument of a plan's first step, with the maps of a kernel that the copy engine
// serves. `params`: those of the call, which `own` begins with.
template <class P>
void set_params(op::Plan& plan, const P& own, const Params& params, const Given& given,
                const DeviceInfo& device) {
  Config c;
  std::memcpy(&c, plan.first().kernel.config.data(), sizeof(c));
  if (!has_maps(c)) return plan.set_params(0, own);
  const Maps maps = maps_of(plan.first(), params, given, device);
  const WithResultMap<P> with_maps{{own, maps.a, maps.b}, maps.d};
  if (c.consumers > 0)
    plan.set_params(0, with_maps);
  else
    plan.set_params(0, static_cast<const WithMaps<P>&>(with_maps));
}

}  // namespace tensorcraft::kernel::gemm
