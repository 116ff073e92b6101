// SPDX-License-Identifier: Apache-2.0
#include "bench/tune_case.hpp"

#include "bench/machine.hpp"
#include "bench/operands.hpp"
#include "tensorcraft/ops/all.hpp"

#include <optional>

namespace tensorcraft::bench {

diagnose::TuneReport tune_case(const Case& c, Device device,
                               const diagnose::TuneSettings& settings) {
  const DeviceInfo& info = device_info(device);
  const diagnose::Request request(find_operator(c.request.op), c.request, info);
  std::optional<Stream> own;
  if (device.is_cuda()) own.emplace(device.index);
  const StreamRef stream = own ? own->ref() : StreamRef();
  // The emulator's time is that of its threads, whatever a cache holds.
  const int copies = device.type == DeviceType::simt
                         ? 1
                         : copies_for(Operands::bytes_of(request), cache_bytes(info));
  const Operands operands(c, request, stream, copies);
  std::vector<diagnose::TuningArrays> arrays;
  arrays.reserve(size_t(copies));
  for (int copy = 0; copy < copies; ++copy)
    arrays.push_back({operands.outputs(copy), operands.inputs(copy), operands.options(copy)});
  return diagnose::tune(request.op(), arrays, stream, settings);
}

}  // namespace tensorcraft::bench
