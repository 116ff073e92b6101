// SPDX-License-Identifier: Apache-2.0
#include "cli/request.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/ops/all.hpp"

namespace tensorcraft::cli {

std::vector<Option> Target::options() {
  const std::vector<std::string> known = known_architectures();
  return {{.name = "--arch",
           .help = "of a GPU that need not be here: " + joined(known),
           .value = &arch,
           .choices = known,
           .is_open = true},
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

Option dtype_option(std::string* value) {
  return {.name = "--dtype",
          .help =
              "of the arrays that name none: float32 (without it), float16, bfloat16, ...; f32, "
              "fp16, bf16, i64 and their like are short for them",
          .value = value,
          .choices = dtype_names(),
          .is_open = true};
}

Option below_option(std::vector<std::string>* values) {
  return {"--below", "NAME=N: integers of this array are below N; may be repeated", values};
}

Option step_option(std::vector<std::string>* values) {
  return {"--step", "NAME=N: integers of this array are 0, N, 2 N, ...; may be repeated", values};
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  names.reserve(kNumDTypes);
  for (int i = 0; i < kNumDTypes; ++i) names.emplace_back(to_string(DType(i)));
  return names;
}

}  // namespace tensorcraft::cli
