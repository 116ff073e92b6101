// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"

namespace tensorcraft::cli {
namespace {

struct Row {
  Device device;
  DeviceInfo info;
  std::string problem;  // why it cannot be used
};

std::vector<Row> rows() {
  std::vector<Row> all{{Device::cpu(), device_info(Device::cpu()), ""}};
  for (int index = 0; index < cuda_device_count(); ++index) {
    Row row{Device::cuda(index), {}, ""};
    try {
      row.info = device_info(row.device);
    } catch (const Error& error) {
      row.problem = error.what();
    }
    all.push_back(row);
  }
  for (const Device device : devices())
    if (device.type == DeviceType::simt) all.push_back({device, device_info(device), ""});
  return all;
}

Json to_json(const Row& row, Device standard) {
  const DeviceInfo& i = row.info;
  return {{"device", to_string(row.device)},
          {"usable", row.problem.empty()},
          {"default", row.device == standard},
          {"problem", row.problem},
          {"name", i.name},
          {"arch", i.arch()},
          {"compute_capability", i.compute_capability},
          {"num_sms", i.num_sms},
          {"threads_per_sm", i.threads_per_sm},
          {"registers_per_sm", i.registers_per_sm},
          {"shared_bytes_per_sm", i.shared_bytes_per_sm},
          {"shared_bytes_per_block", i.shared_bytes_per_block},
          {"l2_bytes", i.l2_bytes},
          {"memory_bytes", i.memory_bytes},
          {"memory_gb_per_s", i.memory_gb_per_s},
          {"peak_bf16_tflops", i.peak_bf16_tflops},
          {"peak_fp8_tflops", i.peak_fp8_tflops},
          {"peak_fp32_tflops", i.peak_fp32_tflops},
          {"tensor_cores", i.has_tensor_cores()},
          {"tma", i.has_tma()},
          {"fp8", i.has_fp8()},
          {"ue8m0", i.has_ue8m0()}};
}

// "tensor cores, FP8, TMA".
std::string features(const DeviceInfo& i) {
  std::string text;
  const std::pair<bool, const char*> all[] = {{i.has_tensor_cores(), "tensor cores"},
                                              {i.has_fp8(), "FP8"},
                                              {i.has_tma(), "TMA"},
                                              {i.has_ue8m0(), "UE8M0"}};
  for (const auto& [has, name] : all)
    if (has) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

std::vector<std::string> to_cells(const Row& row, Device standard) {
  const DeviceInfo& i = row.info;
  const std::string name = to_string(row.device) + (row.device == standard ? " *" : "");
  if (!row.problem.empty()) return {name, row.problem.substr(0, row.problem.find('\n'))};
  if (!row.device.is_cuda()) return {name, i.name};
  return {name,
          i.name,
          i.arch(),
          std::to_string(i.num_sms),
          readable_bytes(double(i.memory_bytes)),
          readable_number(i.memory_gb_per_s) + " GB/s",
          readable_number(i.peak_fp8_tflops),
          readable_number(i.peak_bf16_tflops),
          readable_number(i.peak_fp32_tflops),
          features(i)};
}

int show(Console& console) {
  const Device standard = default_device();
  std::vector<std::vector<std::string>> table{{"device", "name", "arch", "SMs", "memory",
                                               "bandwidth", "fp8 TFLOPS", "bf16 TFLOPS",
                                               "fp32 TFLOPS", "has"}};
  Json all = Json::array();
  for (const Row& row : rows()) {
    all.push_back(to_json(row, standard));
    table.push_back(to_cells(row, standard));
  }
  if (console.json)
    console.print_json(Json{{"devices", all}});
  else
    console.print_table(table);
  return kDone;
}

}  // namespace

Command devices_command() {
  return {.name = "devices",
          .help = "every device, with what it can do; * is where host arrays are computed",
          .options = {},
          .run = show,
          .examples = {"devices", "devices --json"}};
}

}  // namespace tensorcraft::cli
