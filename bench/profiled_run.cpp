// SPDX-License-Identifier: Apache-2.0
#include "bench/profiled_run.hpp"

#include "bench/operands.hpp"
#include "tensorcraft/cuda/profiled_range.hpp"
#include "tensorcraft/ops/all.hpp"

#include <optional>

namespace tensorcraft::bench {

void run_profiled(const Case& c, Device device) {
  const diagnose::Request request(find_operator(c.request.op), c.request, device_info(device));
  std::optional<Stream> own;
  if (device.is_cuda()) own.emplace(device.index);
  const Operands operands(c, request, own ? own->ref() : StreamRef(), 1);
  operands.run(0, c.request.variant);
  synchronize(device);
  std::optional<cuda::ProfiledRange> range;
  if (device.is_cuda()) range.emplace(device.index);
  operands.run(0, c.request.variant);
  synchronize(device);
}

}  // namespace tensorcraft::bench
