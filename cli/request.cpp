// SPDX-License-Identifier: Apache-2.0
#include "cli/request.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/ops/all.hpp"

namespace tensorcraft::cli {

std::vector<Option> Target::options() {
  return {{"--arch", "of a GPU that need not be here, such as sm_90a", &arch},
          {"--device", "one of this machine, such as cuda:0 or cpu", &device}};
}

DeviceInfo Target::info() const {
  if (!arch.empty() && !device.empty())
    fail(ErrorKind::value, "--arch and --device say two things; give one");
  if (!arch.empty()) return device_info_of_arch(arch);
  return device_info(device.empty() ? default_device() : parse_device(device));
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const op::Operator* o : operators()) {
    names.emplace_back(o->description().name);
    for (const auto alias : o->description().aliases) names.emplace_back(alias);
  }
  return names;
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  names.reserve(kNumDTypes);
  for (int i = 0; i < kNumDTypes; ++i) names.emplace_back(to_string(DType(i)));
  return names;
}

}  // namespace tensorcraft::cli
