// SPDX-License-Identifier: Apache-2.0
#include "bench/profiled_run.hpp"
#include "cli/program.hpp"
#include "cli/request.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/diagnose/counters.hpp"
#include "tensorcraft/jit/work_folder.hpp"

#include <filesystem>
#include <memory>

namespace tensorcraft::cli {
namespace {

struct ProfileArguments {
  diagnose::RequestText text;
  std::vector<std::string> below, step;
  std::string device, dtype = "float32", ncu;
  bool run = false;
};

bench::Case case_of(const ProfileArguments& a) {
  bench::Case c{a.text, bench::parse_numbers("profile", a.text.op, "--below", a.below),
                bench::parse_numbers("profile", a.text.op, "--step", a.step)};
  c.request.dtype = a.dtype;
  return c;
}

// Adds the command of a process of its own that runs the same call and prints nothing.
void add_own_command(std::vector<std::string>& words, const ProfileArguments& a) {
  words.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
  words.insert(words.end(), {"profile", "--run", a.text.op});
  words.insert(words.end(), a.text.shapes.begin(), a.text.shapes.end());
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {name, value});
  };
  add("--dtype", a.dtype);
  for (const std::string& option : a.text.options) add("--option", option);
  for (const std::string& below : a.below) add("--below", below);
  for (const std::string& step : a.step) add("--step", step);
  add("--variant", a.text.variant);
  add("--device", a.device);
}

Json to_json(const diagnose::KernelCounters& k) {
  Json stalls = Json::array();
  for (const auto& stall : k.stalls)
    stalls.push_back({{"reason", stall.reason}, {"warps", stall.warps}});
  return {{"kernel", k.kernel},
          {"grid", k.grid},
          {"block", k.block},
          {"us", k.us},
          {"bound", to_string(bound_of(k))},
          {"reason", reason_of(k)},
          {"dram_percent", k.dram},
          {"l2_percent", k.l2},
          {"l1_percent", k.l1},
          {"sm_percent", k.sm},
          {"tensor_percent", k.tensor},
          {"occupancy_percent", k.occupancy},
          {"waves", k.waves},
          {"registers", k.registers},
          {"stalls", stalls}};
}

void print(Console& console, const diagnose::KernelCounters& k) {
  const auto number = [](double value) { return readable_number(value); };
  console.print(k.kernel + ", grid " + k.grid + ", block " + k.block);
  console.print("  bound by " + reason_of(k));
  console.print("  " + number(k.us) + " us at ncu's clock; memory " + number(k.dram) + " %, L2 " +
                number(k.l2) + " %, L1 " + number(k.l1) + " %, multiprocessors " + number(k.sm) +
                " %, tensor cores " + number(k.tensor) + " %");
  console.print("  " + number(k.occupancy) + " % of the warps, " + number(k.waves) + " waves, " +
                std::to_string(k.registers) + " registers");
}

int profile(Console& console, const ProfileArguments& a) {
  const Device device = a.device.empty() ? default_device() : parse_device(a.device);
  if (a.run) {
    bench::run_profiled(case_of(a), device);
    return kDone;
  }
  // This process says what is wrong with the call.
  diagnose::Request(find_operator(a.text.op), case_of(a).request, device_info(device)).explain();
  const jit::WorkFolder folder("profile");
  constexpr const char* kLog = "ncu.csv";
  std::vector<std::string> words = diagnose::ncu_command(
      a.ncu.empty() ? diagnose::require_ncu() : a.ncu, folder.path() + "/" + kLog);
  add_own_command(words, a);
  const int code = run_program(words);
  const auto kernels = diagnose::read_counters(folder.read(kLog));
  if (code != 0) fail(ErrorKind::io, "profile: ", words[0], " ended with exit code ", code);
  if (kernels.empty())
    fail(ErrorKind::unsupported, "profile: ncu saw no kernel of the call on ", device,
         "; it reads the counters of an NVIDIA GPU");
  Json rows = Json::array();
  for (const diagnose::KernelCounters& k : kernels) {
    rows.push_back(to_json(k));
    if (!console.json) print(console, k);
  }
  if (console.json)
    console.print_json(Json{{"op", a.text.op}, {"device", join(device)}, {"kernels", rows}});
  return kDone;
}

}  // namespace

Command profile_command() {
  const auto a = std::make_shared<ProfileArguments>();
  return {.name = "profile",
          .help = "what bounds each kernel of a call, by the counters of a GPU that ncu reads",
          .options = {{"op", "an operator's name", &a->text.op, true},
                      {"shapes", "one of each array, as for explain", &a->text.shapes},
                      dtype_option(&a->dtype),
                      {"--option", "NAME=VALUE of the operator; may be repeated", &a->text.options},
                      below_option(&a->below),
                      step_option(&a->step),
                      {"--variant", "force one", &a->text.variant},
                      {"--device", "one of this machine; else the default device", &a->device},
                      {"--ncu", "the ncu to use; else one on PATH or where it is installed",
                       &a->ncu, false, true},
                      {"--run", "run the call here instead, for a profiler of your own", &a->run}},
          .run = [a](Console& console) { return profile(console, *a); },
          .examples = {"profile gemm 4096x4096 4096x4096 --dtype bf16",
                       "profile softmax 8192x8192 --variant online --json",
                       "profile spmv 4000000 4000000:int32 40001:int32 40000 --step indptr=100 "
                       "--below indices=40000"}};
}

}  // namespace tensorcraft::cli
