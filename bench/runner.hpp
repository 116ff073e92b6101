// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

namespace tensorcraft::bench {

// Something to measure several times.
struct Measured {
  std::string name;  // unlike that of the others of a run
  int repetitions = 1;
  std::function<double()> microseconds;
  double flops = 0;                  // of a call, for the counter GFLOPS; 0: none
  std::vector<double> samples = {};  // what it gave
  std::string error = {};            // what it threw, after which it was not asked again
};

// Measures several in one run, the repetitions of all in random order, so that what drifts (clocks,
// temperature, other programs) meets all of them.
class Runner {
 public:
  virtual ~Runner() = default;
  virtual void run(std::vector<Measured>& all) = 0;
};

// Google Benchmark. With `raw` its own JSON, every repetition in it, is written there; it is whole
// when the runner is gone. Kind unsupported if this build has none, or its library is missing.
std::unique_ptr<Runner> make_runner(std::ostream* raw);

}  // namespace tensorcraft::bench

// google_runner.cpp defines this, in the command or in a module of its own.
extern "C" tensorcraft::bench::Runner* tensorcraft_make_runner(std::ostream* raw);
