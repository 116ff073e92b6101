// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include "tensorcraft/diagnose/doctor.hpp"
#include "tensorcraft/ops/all.hpp"

#include <algorithm>
#include <memory>

namespace tensorcraft::cli {
namespace {

using diagnose::CheckResult;

Color color_of(CheckResult result) {
  if (result == CheckResult::pass) return Color::green;
  return result == CheckResult::warn ? Color::yellow : Color::red;
}

Json to_json(const std::vector<diagnose::DoctorCheck>& checks, bool healthy) {
  Json all = Json::array();
  for (const diagnose::DoctorCheck& c : checks)
    all.push_back({{"number", all.size() + 1},
                   {"name", c.name},
                   {"result", to_string(c.result)},
                   {"finding", c.finding},
                   {"fix", c.fix}});
  return {{"healthy", healthy}, {"checks", all}};
}

void print(Console& console, const std::vector<diagnose::DoctorCheck>& checks) {
  size_t width = 0, number = 0;
  for (const diagnose::DoctorCheck& c : checks) width = std::max(width, c.name.size());
  for (const diagnose::DoctorCheck& c : checks) {
    ++number;
    const std::string place = (number < 10 ? " " : "") + std::to_string(number);
    console.print(place + "  " + console.colored(color_of(c.result), to_string(c.result)) + "  " +
                  c.name + std::string(width - c.name.size() + 2, ' ') + c.finding);
    if (!c.fix.empty()) console.print(std::string(width + 12, ' ') + c.fix);
  }
}

}  // namespace

Command doctor_command() {
  const auto require_gpu = std::make_shared<bool>(false);
  return {.name = "doctor",
          .help = "check driver, device, NVRTC, cache, disk, oneDNN, Python package and versions",
          .options = {{"--require-gpu", "a machine without a usable GPU fails", require_gpu.get()}},
          .run = [require_gpu](Console& console) -> int {
            const auto checks = diagnose::run_doctor({.require_gpu = *require_gpu,
                                                      .probe = &find_operator("l2_normalize"),
                                                      .program_version = TENSORCRAFT_VERSION});
            const bool healthy = std::ranges::none_of(checks, [](const diagnose::DoctorCheck& c) {
              return c.result == CheckResult::fail;
            });
            if (console.json)
              console.print_json(to_json(checks, healthy));
            else
              print(console, checks);
            return healthy ? kDone : kCheckFailed;
          },
          .examples = {"doctor", "doctor --require-gpu --json"}};
}

}  // namespace tensorcraft::cli
