// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/launch/copy_step.hpp"

#include "tensorcraft/device/copy.h"
#include "tensorcraft/op/checks/moved_as.hpp"
#include "tensorcraft/op/checks/rows.hpp"

namespace tensorcraft::op {

void add_copy(Plan& plan, const jit::Rung& copy, const TensorView& to, const TensorView& from) {
  if (to.data() == from.data() || to.size() == 0) return;
  const kernel::CopyParams p{.from = from.data(),
                             .to = to.writable_data(),
                             .count = to.size(),
                             .from_map = element_map(from),
                             .to_map = element_map(to)};
  const kernel::CopyConfig config;
  const Start<kernel::CopyConfig> start{config, div_ceil(p.count, int64_t(config.threads))};
  const DType bits = moved_as(int(dtype_bytes(to.dtype())));
  plan.add_preparation(make_step(copy, std::span(&bits, 1), start), p);
}

}  // namespace tensorcraft::op
