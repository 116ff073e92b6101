// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cli/command.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/diagnose/request.hpp"

#include <string>
#include <vector>

// `explain` and `warmup` share this: the device a question is about.
namespace tensorcraft::cli {

struct Target {
  std::string arch, device;  // at most one is given; none: the default device
  std::vector<Option> options();
  // Kind value if both are given or one is not known.
  DeviceInfo info() const;
};

// Names of all operators and dtypes, for completion.
std::vector<std::string> operator_names();
std::vector<std::string> dtype_names();
// --dtype, into a text that diagnose::Request reads.
Option dtype_option(std::string* value);
// --below and --step, which say what integers of an array are.
Option below_option(std::vector<std::string>* values);
Option step_option(std::vector<std::string>* values);

}  // namespace tensorcraft::cli
