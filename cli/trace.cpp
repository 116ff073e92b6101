// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"
#include "cli/program.hpp"
#include "tensorcraft/core/error.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

namespace tensorcraft::cli {
namespace {

struct TraceArguments {
  std::string output = "trace.json";
  std::vector<std::string> program;
};

// The contents of a finished trace.
struct TraceSummary {
  int64_t events = 0;
  std::set<int64_t> processes;
  std::vector<std::string> tracks;
};

// Reads a trace, a line an event, and ends its list.
TraceSummary finish(const std::string& path) {
  TraceSummary summary;
  std::ifstream in(path);
  std::string line, text;
  while (std::getline(in, line)) {
    if (line == "[") continue;
    if (line.ends_with(',')) line.pop_back();
    const Json event = Json::parse(line, nullptr, false);
    if (event.is_discarded()) continue;  // a killed process left half of a line
    text += (text.empty() ? "" : ",\n") + line;
    summary.processes.insert(event.at("pid").get<int64_t>());
    if (event.at("ph") != "M")
      ++summary.events;
    else if (event.at("name") == "thread_name")
      summary.tracks.push_back(event.at("args").at("name").get<std::string>());
  }
  in.close();
  std::ofstream out(path, std::ios::trunc);
  out << "[\n" << text << "\n]\n";
  if (!out.flush()) fail(ErrorKind::io, path, " cannot be written");
  return summary;
}

void make_empty(const std::string& path) {
  if (!(std::ofstream(path, std::ios::trunc) << "[\n").flush())
    fail(ErrorKind::io, path, " cannot be written: ", std::strerror(errno));
}

int trace(Console& console, const TraceArguments& a) {
  if (a.program.empty()) fail(ErrorKind::value, "give a program and its arguments");
  if (a.program[0].starts_with('-'))
    fail(ErrorKind::value, "there is no option ", a.program[0],
         "; --output goes before the program");
  const std::string output = std::filesystem::absolute(a.output).string();
  make_empty(output);
  ::setenv("TENSORCRAFT_TRACE", output.c_str(), 1);
  const int code = run_program(a.program);
  const TraceSummary summary = finish(output);
  if (console.json)
    console.print_json(Json{{"file", output},
                            {"events", summary.events},
                            {"processes", summary.processes.size()},
                            {"tracks", summary.tracks},
                            {"exit_code", code}});
  else if (summary.events == 0)
    console.print(join(output, ": no events; does the program call operators of TensorCraft?"));
  else
    console.print(join(output, ": ", counted(size_t(summary.events), "event"), " on ",
                       counted(summary.tracks.size(), "track"),
                       "; open it in Perfetto or at chrome://tracing"));
  return code;
}

}  // namespace

Command trace_command() {
  const auto a = std::make_shared<TraceArguments>();
  return {
      .name = "trace",
      .help =
          "run PROGRAM [ARGUMENT]... and write what it does on each device to a file for a viewer",
      .options = {{"--output",
                   "the file, replaced if it exists (trace.json)",
                   &a->output,
                   false,
                   true,
                   {},
                   "-o"}},
      .run = [a](Console& console) { return trace(console, *a); },
      .examples = {"trace python examples/quickstart.py", "trace -o run.json ./program --size 3"},
      .rest = &a->program};
}

}  // namespace tensorcraft::cli
