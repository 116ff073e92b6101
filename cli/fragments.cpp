// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/diagnose/fragments.hpp"

#include <memory>

namespace tensorcraft::cli {
namespace {

struct FragmentsArguments {
  std::string device;
  bool quiet = false;
};

// The GPU at hand, else the emulator.
Device device_of(const FragmentsArguments& a) {
  if (!a.device.empty()) {
    const Device device = parse_device(a.device);
    if (device == Device::cpu())
      fail(ErrorKind::value, "--device must be a GPU or simt, which have fragments, got cpu");
    return device;
  }
  for (const Device device : devices())
    if (device.is_cuda()) return device;
  return Device::simt();
}

int show(Console& console, const FragmentsArguments& a) {
  const Device device = device_of(a);
  Json checks = Json::array();
  std::vector<std::vector<std::string>> table{{"instruction", "registers", "wrong", "first"}};
  int wrong = 0;
  for (const auto& check : diagnose::verify_fragments(device)) {
    wrong += check.wrong;
    checks.push_back(Json{{"instruction", check.instruction},
                          {"registers", check.registers},
                          {"wrong", check.wrong},
                          {"first", check.first}});
    table.push_back({check.instruction, std::to_string(check.registers),
                     std::to_string(check.wrong), check.first});
  }
  if (console.json) {
    console.print_json(Json{{"device", to_string(device)},
                            {"name", device_info(device).name},
                            {"checks", checks},
                            {"maps", diagnose::describe_fragments()}});
  } else {
    if (!a.quiet) console.print(diagnose::describe_fragments());
    console.print_table(table);
    console.print(std::string(wrong ? "the maps differ from " : "the maps are those of ") +
                  to_string(device) + ", " + device_info(device).name);
  }
  return wrong ? kCheckFailed : kDone;
}

}  // namespace

Command fragments_command() {
  const auto a = std::make_shared<FragmentsArguments>();
  return {
      .name = "fragments",
      .help =
          "which element each register of a tensor-core instruction holds, checked by "
          "running it",
      .options = {{"--device", "such as cuda:1 or simt (the GPU at hand, else simt)", &a->device},
                  {"--quiet", "print the checks without the maps", &a->quiet}},
      .run = [a](Console& console) { return show(console, *a); },
      .examples = {"fragments --device simt --quiet"}};
}

}  // namespace tensorcraft::cli
