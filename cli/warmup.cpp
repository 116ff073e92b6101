// SPDX-License-Identifier: Apache-2.0
#include "cli/request.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/diagnose/doctor.hpp"
#include "tensorcraft/jit/warmup.hpp"
#include "tensorcraft/op/launch/simt.hpp"
#include "tensorcraft/ops/all.hpp"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

namespace tensorcraft::cli {
namespace {

// A call, and where it stands: "calls.txt:3".
struct Line {
  std::string place, text;
};

struct WarmupArguments {
  std::string file;
  std::vector<std::string> calls;
  Target target;
  int threads = 0;
};

// The lines of a file, without comments and empty ones.
void add_lines(std::vector<Line>& calls, const std::string& path) {
  std::ifstream opened;
  if (path != "-") {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored))  // can be opened, but not read
      fail(ErrorKind::not_found, path, " is a folder; give a file with one call a line");
    opened.open(path);
    if (!opened)
      fail(ErrorKind::not_found, path, " cannot be read",
           path.find(' ') == path.npos ? "" : "; --call gives a call");
  }
  std::istream& in = path == "-" ? std::cin : opened;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    const std::string place = join(path == "-" ? "standard input" : path, ":", ++number);
    line.resize(std::min(line.size(), line.find('#')));
    if (line.find_first_not_of(" \t\r") != line.npos) calls.push_back({place, line});
  }
}

void add_kernels(std::vector<jit::KernelKey>& kernels, const std::string& call,
                 const DeviceInfo& device) {
  const diagnose::RequestText text = diagnose::parse_request(call);
  const op::Explanation e = diagnose::Request(find_operator(text.op), text, device).explain();
  if (e.variant.empty())
    fail(ErrorKind::value, '"', call, "\": no variant accepts; see tensorcraft explain ", call);
  for (const op::Considered& c : e.variants)
    if (c.variant.name == e.variant && c.plan)
      for (const op::Step& step : c.plan->steps())
        if (!op::is_held(step, device)) kernels.push_back(step.kernel);
}

// The kernels that the calls would launch.
std::vector<jit::KernelKey> kernels_of(const std::vector<Line>& calls, const DeviceInfo& device) {
  std::vector<jit::KernelKey> kernels;
  for (const Line& call : calls) {
    try {
      add_kernels(kernels, call.text, device);
    } catch (const Error& error) {
      fail(error.kind(), call.place, ": ", error.what());
    }
  }
  return kernels;
}

Json to_json(const jit::WarmupStep& step) {
  return {{"name", step.name},
          {"from_disk", step.from_disk},
          {"milliseconds", step.milliseconds},
          {"error", step.error}};
}

int warm_up(Console& console, WarmupArguments& a) {
  const std::string problem = diagnose::cache_problem();
  if (!problem.empty()) fail(ErrorKind::io, "the cache folder cannot be used: ", problem);
  std::vector<Line> calls;
  calls.reserve(a.calls.size());
  for (const std::string& call : a.calls) calls.push_back({"--call", call});
  if (!a.file.empty()) add_lines(calls, a.file);
  if (calls.empty()) fail(ErrorKind::value, "there is nothing to compile; give FILE or --call");
  const DeviceInfo device = a.target.info();
  const bool is_simt = device.device == Device::simt();
  if (!device.device.is_cuda() && !is_simt)
    fail(ErrorKind::value, device.device,
         " compiles nothing; name a GPU with --arch, or the emulator with --device simt");
  const std::string target = is_simt ? to_string(device.device) : device.arch();
  const auto kernels = kernels_of(calls, device);
  Json steps = Json::array();
  const auto progress = [&](const jit::WarmupStep& step) {
    steps.push_back(to_json(step));
    console.show_progress(step.done, step.total, step.name);
  };
  const jit::WarmupReport report = is_simt
                                       ? jit::warmup(kernels, device.device, progress, a.threads)
                                       : jit::warmup(kernels, target, progress, a.threads);
  console.end_progress();
  if (console.json) {
    console.print_json(Json{{"arch", target},
                            {"calls", calls.size()},
                            {"compiled", report.compiled},
                            {"from_disk", report.from_disk},
                            {"failed", report.failures.size()},
                            {"seconds", report.seconds},
                            {"kernels", steps}});
  } else {
    for (const jit::WarmupStep& step : report.failures)
      console.print(console.colored(Color::red, "failed") + "  " + step.name + ": " + step.error);
    console.print(join(counted(calls.size(), "call"), " for ", target, ": ",
                       counted(report.compiled, "kernel"), " compiled, ", report.from_disk,
                       " in the cache already, ", report.failures.size(), " failed, in ",
                       readable_number(report.seconds), " s"));
  }
  return report.failures.empty() ? kDone : kCheckFailed;
}

}  // namespace

Command warmup_command() {
  const auto a = std::make_shared<WarmupArguments>();
  Command command{
      .name = "warmup",
      .help = "compile the kernels of a list of calls into the cache, in parallel",
      .options = {{"file", "one call a line, as after explain; - reads standard input", &a->file,
                   false, true},
                  {"--call",
                   "one call, such as \"gemm 64x64 64x64 --dtype bfloat16\"; may be "
                   "repeated",
                   &a->calls},
                  {"--threads", "how many compile at a time; 0: one a core", &a->threads}},
      .run = [a](Console& console) { return warm_up(console, *a); },
      .examples = {"warmup calls.txt --arch sm_90a",
                   "warmup --call 'softmax 64x64 --dtype bf16' --arch sm_90a"}};
  for (Option& option : a->target.options()) command.options.push_back(option);
  return command;
}

}  // namespace tensorcraft::cli
