// SPDX-License-Identifier: Apache-2.0
#include "bench/runner.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <exception>
#include <ostream>

namespace tensorcraft::bench {
namespace {

// Takes the repetitions out of a run, and hands the run on to Google Benchmark's own JSON.
class Collector : public benchmark::BenchmarkReporter {
 public:
  Collector(std::vector<Measured>& all, benchmark::JSONReporter* json, bool first)
      : all_(all), json_(json), first_(first) {}
  bool ReportContext(const Context& context) override {
    return !json_ || !first_ || json_->ReportContext(context);
  }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const auto of = std::ranges::find(all_, run.run_name.function_name, &Measured::name);
      if (run.run_type == Run::RT_Iteration && of != all_.end() && of->error.empty())
        of->samples.push_back(run.GetAdjustedRealTime());
    }
    if (json_) json_->ReportRuns(runs);
  }

 private:
  std::vector<Measured>& all_;
  benchmark::JSONReporter* const json_;
  const bool first_;
};

void measure(benchmark::State& state, Measured& one) {
  for (auto _ : state) {
    if (one.error.empty()) try {
        const double us = one.microseconds();
        state.SetIterationTime(us / 1e6);
        if (one.flops > 0) state.counters["GFLOPS"] = one.flops / us / 1e3;
        continue;
      } catch (const std::exception& error) {
        one.error = error.what();
      }
    state.SkipWithError(one.error.c_str());
    break;
  }
}

class GoogleRunner : public Runner {
 public:
  explicit GoogleRunner(std::ostream* raw) {
    std::array<char*, 3> arguments = {program_.data(), interleaved_.data(), nullptr};
    int count = 2;
    benchmark::Initialize(&count, arguments.data());
    if (!raw) return;
    json_ = std::make_unique<benchmark::JSONReporter>();
    json_->SetOutputStream(raw);
  }
  ~GoogleRunner() override {
    if (json_ && !first_) json_->Finalize();
  }
  void run(std::vector<Measured>& all) override {
    for (Measured& one : all)
      benchmark::RegisterBenchmark(one.name.c_str(), [&one](auto& state) { measure(state, one); })
          ->UseManualTime()
          ->Iterations(1)
          ->Repetitions(one.repetitions)
          ->Unit(benchmark::kMicrosecond);
    Collector collector(all, json_.get(), first_);
    benchmark::RunSpecifiedBenchmarks(&collector);
    benchmark::ClearRegisteredBenchmarks();
    first_ = false;
  }

 private:
  std::string program_ = "tensorcraft bench";
  std::string interleaved_ = "--benchmark_enable_random_interleaving=true";
  std::unique_ptr<benchmark::JSONReporter> json_;
  bool first_ = true;
};

}  // namespace
}  // namespace tensorcraft::bench

tensorcraft::bench::Runner* tensorcraft_make_runner(std::ostream* raw) {
  return new tensorcraft::bench::GoogleRunner(raw);
}
