// SPDX-License-Identifier: Apache-2.0
#include "bench/engine.hpp"

#include "bench/regression.hpp"
#include "bench/verify.hpp"
#include "cli/request.hpp"
#include "cli/results.hpp"
#include "cli/whole_file.hpp"
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/diagnose/doctor.hpp"
#include "tensorcraft/ops/all.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>

namespace tensorcraft::cli {
namespace {

struct BenchArguments {
  diagnose::RequestText text;
  std::vector<std::string> more_shapes;
  std::vector<std::string> below, step;
  std::string suite, only, device, dtype = "float32", results, baseline, raw;
  std::vector<std::string> peers;
  std::string variant;
  std::optional<std::string> json;
  bool warm = false, verify = false;
  double warmup = 1, seconds = 0.3, tolerance = 0.05;
  int repetitions = 0;
};

// As results spell it; what is no dtype stays, for the request to refuse.
std::string full_dtype(const std::string& name) {
  const auto dtype = parse_dtype(name);
  return dtype ? std::string(to_string(*dtype)) : name;
}

void write_results(const std::string& path, const bench::Results& results) {
  write_whole_file(path, bench::to_text(results));
}

// Keeps what is measured, so that a run that is cut off leaves it; a pipe takes the end alone.
void save(const BenchArguments& a, const bench::Progress& p) {
  if (!a.json || a.json->empty() || p.done == 0 || !p.so_far) return;
  if (!std::filesystem::exists(*a.json) || std::filesystem::is_regular_file(*a.json))
    write_results(*a.json, *p.so_far);
}

bench::Case case_of(const BenchArguments& a) {
  bench::Case c{a.text, bench::parse_numbers("bench", a.text.op, "--below", a.below),
                bench::parse_numbers("bench", a.text.op, "--step", a.step)};
  c.request.dtype = full_dtype(a.dtype);
  for (const std::string& shape : a.more_shapes) c.request.shapes.push_back(shape);
  return c;
}

std::vector<bench::Case> cases_of(const BenchArguments& a) {
  if (a.text.op.empty() == a.suite.empty())
    fail(ErrorKind::value, "bench: name an operator and its shapes, or a suite with --suite");
  if (!a.suite.empty()) return bench::cases_with("bench", a.suite, a.only);
  if (!a.only.empty()) fail(ErrorKind::value, "bench: --only chooses among the cases of --suite");
  find_operator(a.text.op);
  return {case_of(a)};
}

// A line that is drawn ten times a second at most: drawing takes time from what is measured.
class Bar {
 public:
  explicit Bar(Console& console) : console_(console) {}
  ~Bar() { console_.end_progress(); }
  void show(const bench::Progress& p) {
    using std::chrono::duration;
    const auto now = Clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    const double spent = duration<double>(now - start_).count();
    const int left = p.fraction > 0 ? int(spent * (1 - p.fraction) / p.fraction) : 0;
    const std::string seconds = std::to_string(left % 60);
    const std::string text = std::to_string(left / 60) + (seconds.size() < 2 ? ":0" : ":") +
                             seconds + " left, " + p.what;
    console_.show_progress(p.done, p.total, p.fraction > 0 ? text : p.what);
  }

 private:
  using Clock = std::chrono::steady_clock;
  Console& console_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_;
};

bench::Results measure(Console& console, const BenchArguments& a) {
  const std::vector<bench::Case> cases = cases_of(a);
  const Device device = a.device.empty() ? default_device() : parse_device(a.device);
  bench::Settings settings{.device = device,
                           .variant = a.variant,
                           .peers = a.peers,
                           .warm = a.warm,
                           .warmup_s = a.warmup,
                           .seconds = a.seconds,
                           .repetitions = a.repetitions};
  if (settings.peers.empty()) settings.peers = {"copy"};
  std::ofstream raw;
  if (!a.raw.empty()) raw.open(a.raw);
  if (!a.raw.empty() && !raw) fail(ErrorKind::io, a.raw, " cannot be written to");
  const auto runner = bench::make_runner(a.raw.empty() ? nullptr : &raw);
  Bar bar(console);
  return bench::run(cases, settings, *runner, [&](const bench::Progress& p) {
    bar.show(p);
    save(a, p);
  });
}

std::string fixed(double value) { return value > 0 ? readable_number(value) : ""; }

// "29.3 GFLOPS", "44.5 TFLOPS".
std::string rate(double tflops) {
  if (tflops <= 0) return "";
  return tflops < 0.1 ? readable_number(tflops * 1e3) + " GFLOPS"
                      : readable_number(tflops) + " TFLOPS";
}

// "63.4 %"; nothing for 0.
std::string percent(double share) { return share > 0 ? readable_number(share * 100) + " %" : ""; }

// The peers that any row is compared with.
std::set<std::string> peers_in(const bench::Results& results) {
  std::set<std::string> names;
  for (const bench::Row& row : results.rows)
    if (!row.is_ours() && row.is_measured()) names.insert(row.candidate);
  return names;
}

// "copy 0.97  cublaslt not compared: timed by events"; "0.97" if there is one peer.
std::string ratios_text(const bench::Row& row, const std::vector<bench::Row>& rows, bool one_peer) {
  std::vector<std::string> parts;
  if (row.is_ours() && row.is_measured())
    for (const bench::Row* peer : bench::peers_of(row, rows)) {
      const double ratio = bench::ratio(row, *peer);
      parts.push_back(
          (one_peer ? "" : peer->candidate + ' ') +
          (ratio > 0 ? readable_number(ratio) : "not compared: timed by " + peer->timing));
    }
  return joined(parts, "  ");
}

// A column that is empty in every row is left out.
void drop_empty_columns(std::vector<std::vector<std::string>>& table) {
  for (size_t column = table[0].size(); column-- > 0;) {
    const auto is_empty = [&](const std::vector<std::string>& row) {
      return &row == &table[0] || column >= row.size() || row[column].empty();
    };
    if (!std::ranges::all_of(table, is_empty)) continue;
    for (auto& row : table)
      if (column < row.size()) row.erase(row.begin() + std::ptrdiff_t(column));
  }
}

bool has_onednn_variant(const bench::Row& row) {
  return row.is_ours() &&
         std::ranges::any_of(find_operator(row.op).description().variants,
                             [](const op::VariantInfo& v) { return v.name == "onednn"; });
}

// Says once that a library is missing which one of the operators has a variant for.
void print_missing(Console& console, const bench::Results& results) {
  const std::string problem = diagnose::onednn_problem();
  if (!problem.empty() && std::ranges::any_of(results.rows, has_onednn_variant))
    console.print("onednn: not found: " + problem + "; see tensorcraft doctor");
}

// The geometric means of the ratios to each peer, of each group and of all, if there is more than
// one case.
void print_means(Console& console, const bench::Results& results) {
  if (results.rows.empty()) return;
  const Json summary = summary_of(results, results.title);
  const Json& cases = summary["cases"];
  if (cases.size() < 2) return;
  const bool one_operator =
      std::ranges::all_of(cases, [&](const Json& c) { return c["op"] == cases[0]["op"]; });
  std::vector<std::vector<std::string>> table{
      {"geometric mean", "vs", "ratio", "smallest", "cases", "slower in"}};
  for (const char* kind : {"groups", "geomeans"})
    for (const Json& mean : summary[kind])
      if (mean.contains("geomean") &&
          !(one_operator && mean.contains("op") && mean["op"] != cases[0]["op"]))
        table.push_back({mean.value("group", mean.value("op", "")), mean["peer"],
                         fixed(mean["geomean"]), fixed(mean["smallest"]), mean["count"].dump(),
                         mean.contains("losing") ? mean["losing"].dump() : "a bound"});
  if (table.size() == 1) return;
  console.print("");
  console.print_table(table);
}

void print(Console& console, const bench::Results& results) {
  const std::set<std::string> peers = peers_in(results);
  const bool one_peer = peers.size() == 1;
  std::vector<std::vector<std::string>> table{
      {"case", "candidate", "median us", "p10", "p90", "runs", "GB/s", "rate", "of peak",
       "floor us", "timing", one_peer ? "vs " + *peers.begin() : "vs peers"}};
  std::string last;
  for (const bench::Row& row : results.rows) {
    const std::string name = row.op + ' ' + row.name;
    const std::string candidate =
        row.is_ours() ? row.variant + (row.chosen ? " *" : "") : row.candidate;
    table.push_back({name == last ? "" : name, candidate});
    last = name;
    if (row.is_measured())
      for (const std::string& cell :
           {fixed(row.median_us), fixed(row.p10_us), fixed(row.p90_us), std::to_string(row.runs),
            fixed(row.gbs()), row.candidate == "copy" ? "" : rate(row.tflops()),
            percent(bench::share_of_peak(row, results.device)), fixed(row.floor_us),
            row.timing + ", " + row.cache, ratios_text(row, results.rows, one_peer)})
        table.back().push_back(cell);
    else if (!row.error.empty())
      table.back().resize(table[0].size() - 1);
    if (!row.error.empty()) table.back().push_back((row.failed() ? "error: " : "") + row.error);
  }
  drop_empty_columns(table);
  console.print_table(table);
  print_means(console, results);
  for (const std::string& text : results.skipped) console.print("skipped: " + text);
}

// Judges the ratios of a baseline: true if one fell.
bool judge(Console& console, Json& json, const bench::Results& now, const BenchArguments& a) {
  using Kind = bench::Change::Kind;
  const bench::Results before = bench::read_results(a.baseline);
  bool fell = false;
  Json changes = Json::array();
  for (const bench::Change& change : bench::compare(now, before, a.tolerance)) {
    constexpr std::array<const char*, 4> kWords = {"same", "fell", "only now", "only before"};
    const std::string word = kWords.at(size_t(change.kind));
    changes.push_back(
        {{"what", change.what}, {"before", change.before}, {"now", change.now}, {"change", word}});
    fell = fell || change.kind == Kind::fell;
    if (console.json || change.kind == Kind::same) continue;
    const std::string numbers =
        change.kind == Kind::fell
            ? ": " + readable_number(change.before) + " before, " + readable_number(change.now)
            : "";
    console.print(console.colored(change.kind == Kind::fell ? Color::red : Color::yellow, word) +
                  "  " + change.what + numbers);
  }
  json["changes"] = changes;
  if (!console.json && !fell) console.print("no ratio fell below " + a.baseline);
  return fell;
}

Json to_json(const bench::TestResult& result) {
  const bench::TestCase& test = result.test;
  return {{"suite", to_string(test.suite)},
          {"name", describe(test)},
          {"passed", result.passed},
          {"message", result.message},
          {"milliseconds", result.execution_time},
          {"tflops", result.achieved_tflops}};
}

int verify_product(Console& console, const BenchArguments& a) {
  if (!a.text.op.empty() || !a.suite.empty())
    fail(ErrorKind::value, "bench: --verify has tests of its own; leave operator and --suite out");
  const Device device = a.device.empty() ? default_device() : parse_device(a.device);
  bench::AutomatedTestFramework tests(device);
  tests.add_standard();
  if (!console.json) std::cout << bench::report_head(tests.tests().size()) << std::flush;
  const auto progress = [&](size_t done, size_t total, const std::string& what) {
    console.show_progress(done, total, what);
  };
  const auto finished = [&](const bench::TestResult& result) {  // at once, since tests take a while
    console.end_progress();
    if (!console.json) std::cout << bench::report_line(result) << std::flush;
  };
  const std::vector<bench::TestResult> results = tests.run(progress, finished);
  Json all = Json::array();
  for (const bench::TestResult& result : results) all.push_back(to_json(result));
  const bool passed = bench::all_passed(results);
  const Json json{{"device", to_string(device)}, {"passed", passed}, {"tests", all}};
  if (a.json && !a.json->empty()) write_whole_file(*a.json, json.dump(1) + '\n');
  if (console.json)
    console.print_json(json);
  else
    std::cout << bench::report_end(results);
  return passed ? kDone : kCheckFailed;
}

void check(const BenchArguments& a) {
  const auto require = [](bool holds, std::string_view what, auto got) {
    if (!holds) fail(ErrorKind::value, "bench: ", what, ", got ", got);
  };
  require(a.seconds > 0, "--seconds must be above 0", a.seconds);
  require(a.warmup >= 0, "--warmup must be 0 seconds or more", a.warmup);
  require(a.repetitions >= 0, "--repetitions must be 0 or more", a.repetitions);
  require(a.tolerance >= 0, "--tolerance must be 0 or more", a.tolerance);
}

int bench_main(Console& console, const BenchArguments& a) {
  check(a);
  console.json = a.json && a.json->empty();
  if (a.verify) return verify_product(console, a);
  const bench::Results results =
      a.results.empty() ? measure(console, a) : bench::read_results(a.results);
  Json json = bench::to_json(results);
  if (a.json && !a.json->empty()) write_results(*a.json, results);
  if (!console.json) print(console, results);
  if (!console.json && a.results.empty() && results.device.value("arch", "") == "cpu")
    print_missing(console, results);
  const bool fell = !a.baseline.empty() && judge(console, json, results, a);
  if (console.json) console.print_json(json);
  const bool failed = std::ranges::any_of(results.rows, &bench::Row::failed);
  return fell || failed ? kCheckFailed : kDone;
}

}  // namespace

Command bench_command() {
  const auto a = std::make_shared<BenchArguments>();
  return {
      .name = "bench",
      .help = "time a call, or a suite of them, beside its peers in one interleaved run",
      .options =
          {{"op", "an operator's name", &a->text.op},
           {"shapes", "one of each array, as for explain", &a->text.shapes},
           {"--shape", "one more shape; may be repeated", &a->more_shapes},
           dtype_option(&a->dtype),
           {"--option", "NAME=VALUE of the operator; may be repeated", &a->text.options},
           below_option(&a->below),
           step_option(&a->step),
           {"--suite", "cases that are known by a name", &a->suite, false, false,
            bench::suite_names(bench::kSuitesText)},
           {"--only", "cases of the suite whose group, operator, shape, dtype or options have this",
            &a->only},
           {"--variant", "one by name, or all; without it the chosen one", &a->variant},
           {"--peer",
            "copy (without it), cublaslt, cublaslt+kernel, cudnn, all, none; may be repeated",
            &a->peers},
           {"--device", "cpu or a GPU of this machine; else the default device", &a->device},
           {"--warm",
            "use the same arrays each time; else they come from memory, but for small ones",
            &a->warm},
           {"--warmup", "seconds of calls before the first case, a tenth before others (1)",
            &a->warmup},
           {"--seconds", "that a candidate is measured, about (0.3)", &a->seconds},
           {"--repetitions", "how often, whatever time it takes", &a->repetitions},
           {"--json", "print one JSON value, or write it to the file that follows", &a->json, false,
            true},
           {"--raw", "also write Google Benchmark's JSON, every repetition, to this file", &a->raw,
            false, true},
           {"--results", "judge this file instead of measuring", &a->results, false, true},
           {"--fail-on-regression", "results to hold the ratios against; fails where one fell",
            &a->baseline, false, true},
           {"--tolerance", "by which a ratio may fall (0.05)", &a->tolerance},
           {"--verify",
            "check the product in five suites: correctness, performance, boundary, stress, "
            "regression",
            &a->verify}},
      .run = [a](Console& console) { return bench_main(console, *a); },
      .examples = {"bench softmax 4096x4096 --dtype bf16",
                   "bench gemm 512x512 512x512 --device cpu --variant all --json results.json",
                   "bench --suite smoke --peer all", "bench --verify",
                   "bench --suite gemm-llm --only \"M 1 to 64\" --peer cublaslt --seconds 0.1"}};
}

}  // namespace tensorcraft::cli
