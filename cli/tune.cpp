// SPDX-License-Identifier: Apache-2.0
#include "bench/tune_case.hpp"

#include "cli/request.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/ops/all.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

namespace tensorcraft::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct TuneArguments {
  diagnose::RequestText text;
  std::vector<std::string> below, step;
  std::string suite, only, device, dtype = "float32", exported, imported;
  double seconds = 0;
  bool again = false, all = false, list = false;
};

std::vector<bench::Case> cases_of(const TuneArguments& a) {
  if (a.text.op.empty() == a.suite.empty())
    fail(ErrorKind::value, "tune: name an operator and its shapes, or a suite with --suite");
  if (!a.suite.empty()) return bench::cases_with("tune", a.suite, a.only);
  if (!a.only.empty()) fail(ErrorKind::value, "tune: --only chooses among the cases of --suite");
  find_operator(a.text.op);
  bench::Case c{a.text, bench::parse_numbers("tune", a.text.op, "--below", a.below),
                bench::parse_numbers("tune", a.text.op, "--step", a.step)};
  c.request.dtype = a.dtype;
  return {c};
}

std::string choice_text(std::string_view variant, std::string_view config) {
  return diagnose::to_string(diagnose::TuningCandidate{std::string(variant), std::string(config)});
}

Json to_json(const op::TunedRow& row) {
  const op::TunedEntry& p = row.entry;
  return {{"device", row.key.device},  {"op", row.key.op},
          {"call", row.key.call},      {"variant", p.variant},
          {"config", p.config},        {"us", p.us},
          {"model_us", p.model_us},    {"iterations", row.iterations},
          {"version", row.key.version}};
}

Json to_json(const diagnose::TuneReport& report) {
  Json json = to_json(report.row);
  json["problem"] = report.problem;
  json["model"] = {{"variant", report.model.variant}, {"config", report.model.config}};
  json["tflops"] = report.tflops;
  json["end"] = report.end;
  Json trials = Json::array();
  for (const diagnose::TuningIteration& one : report.iterations)
    trials.push_back({{"variant", one.candidate.variant},
                      {"config", one.candidate.config},
                      {"us", one.us},
                      {"best_us", one.best_us},
                      {"error", one.error.empty() ? Json() : Json(one.error)}});
  json["trials"] = trials;
  return json;
}

std::string result_text(const op::TunedEntry& p) {
  return choice_text(p.variant, p.config) + ": " + readable_number(p.us) + " us, " + gain_text(p);
}

void print(Console& console, const std::string& name, const diagnose::TuneReport& report) {
  const op::TunedEntry& p = report.row.entry;
  console.print(name + "\n  " + result_text(p) + " (" +
                choice_text(report.model.variant, report.model.config) + ": " +
                readable_number(p.model_us) + " us)\n  " +
                counted(size_t(report.row.iterations), "iteration") + ", " + report.end);
}

std::string clock_text(double seconds) {
  const auto whole = int(std::ceil(seconds));
  const std::string rest = std::to_string(whole % 60);
  return std::to_string(whole / 60) + (rest.size() < 2 ? ":0" : ":") + rest;
}

// Shares the time among the cases that are left.
double share_of_time(const TuneArguments& a, Clock::time_point start, size_t cases_left) {
  if (a.seconds <= 0) return 0;
  const double spent = std::chrono::duration<double>(Clock::now() - start).count();
  return std::max(a.seconds - spent, 1e-3) / double(cases_left);
}

int tune_cases(Console& console, const TuneArguments& a) {
  const std::vector<bench::Case> cases = cases_of(a);
  const Device device = a.device.empty() ? default_device() : parse_device(a.device);
  const auto start = Clock::now();
  Json rows = Json::array();
  bool failed = false;
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string name = cases[i].request.op + ' ' + cases[i].name();
    diagnose::TuneSettings settings;
    settings.again = a.again;
    settings.rules.measures_all = a.all;
    settings.rules.seconds = share_of_time(a, start, cases.size() - i);
    settings.progress = [&](const diagnose::AdaptivePerformanceTuner& tuner) {
      console.show_progress(i, cases.size(),
                            clock_text(tuner.seconds_left()) + " left, " + name + ": " +
                                to_string(tuner.iterations().back().candidate));
    };
    settings.say = [&](std::string_view message) {
      console.end_progress();
      if (!console.json) console.print(message);
    };
    try {
      const diagnose::TuneReport report = bench::tune_case(cases[i], device, settings);
      console.end_progress();
      rows.push_back(to_json(report));
      if (!console.json) print(console, name, report);
    } catch (const Error& error) {
      console.end_progress();
      if (cases.size() == 1 || error.kind() == ErrorKind::device_lost) throw;
      failed = true;
      rows.push_back({{"op", cases[i].request.op}, {"case", name}, {"error", error.what()}});
      if (!console.json) console.print(name + "\n  " + error.what());
    }
  }
  if (console.json) console.print_json(Json{{"device", device_info(device).name}, {"cases", rows}});
  return failed ? kCheckFailed : kDone;
}

int list_tuned(Console& console) {
  Json rows = Json::array();
  for (const std::string& path : op::TuningDatabase::paths())
    for (const op::TunedRow& row : op::TuningDatabase::read(path)) {
      rows.push_back(to_json(row));
      if (!console.json)
        console.print(row.key.device + ", " + row.key.op + ' ' + row.key.call + "\n  " +
                      result_text(row.entry));
    }
  if (console.json)
    console.print_json(Json{{"tuned", rows}});
  else if (rows.empty())
    console.print("nothing is tuned");
  return kDone;
}

int tune_main(Console& console, const TuneArguments& a) {
  if (!(a.seconds >= 0))
    fail(ErrorKind::value, "tune: --seconds must be above 0, or left out, got ", a.seconds);
  const bool tunes = !a.text.op.empty() || !a.suite.empty();
  if (int(tunes) + int(a.list) + int(!a.exported.empty()) + int(!a.imported.empty()) > 1)
    fail(ErrorKind::value, "tune: --list, --export and --import stand alone");
  if (a.list) return list_tuned(console);
  if (a.exported.empty() && a.imported.empty()) return tune_cases(console, a);
  const bool out = !a.exported.empty();
  const size_t taken = out ? op::export_tuned(a.exported) : op::import_tuned(a.imported);
  if (console.json)
    console.print_json(out ? Json{{"file", a.exported}, {"exported", taken}}
                           : Json{{"file", a.imported}, {"imported", taken}});
  else
    console.print((out ? "wrote " : "took ") + counted(taken, "result") +
                  (out ? " to " + a.exported : " from " + a.imported));
  return kDone;
}

}  // namespace

Command tune_command() {
  const auto a = std::make_shared<TuneArguments>();
  return {
      .name = "tune",
      .help = "measure which variant and tile of a call is the fastest; later calls take it",
      .options = {{"op", "an operator's name", &a->text.op},
                  {"shapes", "one of each array, as for explain", &a->text.shapes},
                  dtype_option(&a->dtype),
                  {"--option", "NAME=VALUE of the operator; may be repeated", &a->text.options},
                  below_option(&a->below),
                  step_option(&a->step),
                  {"--suite", "cases that are known by a name", &a->suite, false, false,
                   bench::suite_names(bench::kSuitesText)},
                  {"--only",
                   "cases of the suite whose group, operator, shape, dtype or options have this",
                   &a->only},
                  {"--device", "one of this machine; else the default device", &a->device},
                  {"--seconds", "that all may take, about; else as long as they need", &a->seconds},
                  {"--all", "measure every candidate, however slow", &a->all},
                  {"--again", "measure what is known already once more", &a->again},
                  {"--list", "show what is tuned", &a->list},
                  {"--export", "write all that is tuned into one file", &a->exported, false, true},
                  {"--import", "add what such a file has; of two results the faster stays",
                   &a->imported, false, true}},
      .run = [a](Console& console) { return tune_main(console, *a); },
      .examples = {"tune gemm 4096x4096 4096x4096 --dtype bf16",
                   "tune softmax 8192x8192 --seconds 10", "tune --suite gemm-llm --seconds 600",
                   "tune --export h100.tuned"}};
}

}  // namespace tensorcraft::cli
