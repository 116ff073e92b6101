// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/operator.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::diagnose {

// How a check ended.
enum class CheckResult { pass, warn, fail };
std::string_view to_string(CheckResult result);  // "PASS", "WARN", "FAIL"

// One thing that the library needs from its machine.
struct DoctorCheck {
  std::string name;                        // "driver", "cache folder", ...
  CheckResult result = CheckResult::pass;  // the answer
  std::string finding;                     // one line
  std::string fix;                         // one line; empty if nothing is to be done
};

// The program that asks says here what it knows and wants.
struct DoctorOptions {
  // A machine without a usable GPU is healthy, with warnings, unless one is required.
  bool require_gpu = false;
  // l2_normalize, run once on the first usable GPU or else the CPU; null leaves that check out.
  const op::Operator* probe = nullptr;
  // The version of the program that asks; empty if it is part of the library.
  std::string_view program_version = {};
};

// Why compiled kernels cannot be kept, with the folder's name; empty if they can. Writes a file of
// 4 KiB to find out.
std::string cache_problem();
// Why products on the CPU cannot take oneDNN, in one line; empty if they can.
std::string onednn_problem();

// Every check in a fixed order, whatever is broken; a check that cannot be made has failed. Starts
// a Python interpreter if there is one, and gives it 30 seconds.
std::vector<DoctorCheck> run_doctor(const DoctorOptions& options);

}  // namespace tensorcraft::diagnose
