// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kernel_baseline.hpp"

#include "tensorcraft/core/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

namespace tensorcraft::test {
namespace {

using Json = nlohmann::json;

constexpr std::array<const char*, 7> kColumns = {"registers",   "shared_bytes", "spill_bytes",
                                                 "stack_bytes", "code_bytes",   "threads",
                                                 "min_blocks"};

Json to_json(const KernelUse& use) {
  return {use.registers,  use.shared_bytes, use.spill_bytes, use.stack_bytes,
          use.code_bytes, use.threads,      use.min_blocks};
}

KernelUse from_json(const Json& row) {
  return {.registers = row.at(0),
          .shared_bytes = row.at(1),
          .spill_bytes = row.at(2),
          .stack_bytes = row.at(3),
          .code_bytes = row.at(4),
          .threads = row.at(5),
          .min_blocks = row.at(6)};
}

struct Quantity {
  const char* name;
  size_t before, now;
  bool grew() const { return 10 * now > 11 * before; }
};

std::array<Quantity, 5> quantities(const KernelUse& before, const KernelUse& now) {
  return {{{"registers", size_t(before.registers), size_t(now.registers)},
           {"bytes of shared memory", before.shared_bytes, now.shared_bytes},
           {"bytes of spills", before.spill_bytes, now.spill_bytes},
           {"bytes of stack", before.stack_bytes, now.stack_bytes},
           {"bytes of code", before.code_bytes, now.code_bytes}}};
}

std::string growth(const Quantity& q) {
  std::string text = join(q.before, " ", q.name, " before, ", q.now, " now");
  if (q.before > 0) text += join(": ", 100 * (q.now - q.before) / q.before, " % more");
  return text;
}

std::string promise(const KernelUse& use) {
  return join("the launch bounds promise ", use.min_blocks, " blocks of ", use.threads, " threads");
}

// Returns what no baseline can allow.
std::vector<std::string> defects(const MeasuredKernel& kernel, const KernelUse& before) {
  std::vector<std::string> found;
  const auto& use = kernel.use;
  for (const Quantity& q : {quantities(before, use)[2], quantities(before, use)[3]})
    if (q.now > 0 && !kernel.may_spill)
      found.push_back(join(growth(q), ", and its variant declares no reason for any"));
  if (kernel.promised.blocks_per_sm < use.min_blocks)
    found.push_back(join(promise(use), " (", before.min_blocks,
                         " before), but a multiprocessor holds ", kernel.promised.blocks_per_sm,
                         ", limited by ", kernel.promised.limit, ": a thread takes ", use.registers,
                         " registers"));
  return found;
}

// "bm64_t128" of "_bm64_tm0_t128": a rung does not use what is 0.
std::string without_zeros(std::string_view fields) {
  std::string kept;
  while (!fields.empty()) {
    fields.remove_prefix(1);  // the line before each
    const std::string_view field = fields.substr(0, fields.find('_'));
    fields.remove_prefix(field.size());
    const size_t value = field.find_first_of("0123456789");
    if (value != field.npos && field.substr(value) == "0") continue;
    kept.append(kept.empty() ? "" : "_").append(field);
  }
  return kept;
}

// A kernel's name in two: the rung, by which the file is grouped, and the rest.
std::pair<std::string, std::string> split_name(const std::string& name) {
  const size_t space = name.find(' ');
  return {name.substr(0, space), name.substr(space + 1)};
}

}  // namespace

MeasuredKernel measured_kernel(const op::KernelReport& report, const DeviceInfo& device,
                               bool may_spill) {
  const int threads = int(report.launch.block.count());
  return {.use = {.registers = report.registers,
                  .shared_bytes = report.shared_bytes,
                  .spill_bytes = report.spill_bytes,
                  .stack_bytes = report.stack_bytes,
                  .code_bytes = report.code_bytes,
                  .threads = threads,
                  .min_blocks = report.min_blocks},
          .promised = occupancy(device, {.threads = threads, .registers = report.registers}),
          .blocks_per_sm = report.occupancy.blocks_per_sm,
          .may_spill = may_spill};
}

std::string kernel_name(const jit::KernelKey& key) {
  const std::string entry = jit::entry_name(*key.rung);
  std::string name = entry + " ";
  size_t used = entry.size();
  for (int i = 0; i < key.num_types; ++i) {
    name.append(i ? "," : "").append(to_string(key.types[size_t(i)]));
    used += 1 + to_string(key.types[size_t(i)]).size();
  }
  const std::string config = without_zeros(jit::readable_name(key).substr(used));
  return config.empty() ? name : name + " " + config;
}

std::string rung_name(const std::string& kernel_name) { return split_name(kernel_name).first; }

KernelBaseline read_baseline(const std::string& path) {
  std::ifstream file(path);
  if (!file) fail(ErrorKind::not_found, "the baseline ", path, " cannot be read");
  KernelBaseline baseline;
  try {
    const Json json = Json::parse(file);
    if (json.at("columns") != Json(kColumns))
      fail(ErrorKind::value, path, " has other columns: ", json.at("columns").dump());
    baseline.nvrtc = json.at("nvrtc");
    baseline.texts = json.at("texts").get<std::map<std::string, RungTexts>>();
    for (const auto& [arch, rungs] : json.at("kernels").items())
      for (const auto& [rung, kernels] : rungs.items())
        for (const auto& [name, row] : kernels.items())
          baseline.kernels[arch][rung + " " + name] = from_json(row);
  } catch (const Json::exception& error) {
    fail(ErrorKind::value, path, " is no baseline of kernels: ", error.what());
  }
  return baseline;
}

void write_baseline(const KernelBaseline& baseline, const std::string& path) {
  Json kernels = Json::object();
  for (const auto& [arch, rows] : baseline.kernels)
    for (const auto& [name, use] : rows) {
      const auto [rung, rest] = split_name(name);
      kernels[arch][rung][rest] = to_json(use);
    }
  std::ofstream file(path);
  file << Json{{"nvrtc", baseline.nvrtc},
               {"columns", kColumns},
               {"texts", baseline.texts},
               {"left_out", baseline.left_out},
               {"kernels", kernels}}
       << '\n';
  if (!file.flush()) fail(ErrorKind::io, path, " cannot be written");
}

Findings judge(const MeasuredKernels& measured, const std::string& arch, const std::string& nvrtc,
               const KernelBaseline& baseline, std::string_view accept) {
  static const KernelUses kNone;
  const auto of_arch = baseline.kernels.find(arch);
  const auto& rows = of_arch == baseline.kernels.end() ? kNone : of_arch->second;
  const bool same_compiler = nvrtc == baseline.nvrtc;
  Findings found;
  const auto add = [&](std::vector<std::string>& to, std::string_view name, std::string_view what) {
    to.push_back(join(name, " for ", arch, ": ", what, "; where that is meant: ", accept));
  };
  for (const auto& [name, kernel] : measured) {
    const auto row = rows.find(name);
    const KernelUse before = row == rows.end() ? KernelUse{} : row->second;
    for (const std::string& defect : defects(kernel, before))
      found.failures.push_back(join(name, " for ", arch, ": ", defect));
    // Not every architecture has the shared memory for what the registers are kept free for.
    if (kernel.blocks_per_sm < std::min(kernel.use.min_blocks, kernel.promised.blocks_per_sm))
      found.notes.push_back(join(name, " for ", arch, ": ", promise(kernel.use), ", but ",
                                 kernel.use.shared_bytes, " bytes of shared memory a block let a ",
                                 "multiprocessor hold ", kernel.blocks_per_sm));
    if (row == rows.end()) {
      add(found.failures, name, "is new, the baseline does not list it");
      continue;
    }
    for (const Quantity& q : quantities(before, kernel.use))
      if (q.grew()) add(same_compiler ? found.failures : found.notes, name, growth(q));
  }
  for (const auto& [name, use] : rows)
    if (!measured.contains(name)) add(found.failures, name, "is gone, the baseline still lists it");
  return found;
}

}  // namespace tensorcraft::test
