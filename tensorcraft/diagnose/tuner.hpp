// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::diagnose {

// One way to compute a call: values of its options.
struct TuningCandidate {
  std::string variant;      // by name
  std::string config = {};  // of the operator's settings; empty: as the cost model says
  friend bool operator==(const TuningCandidate&, const TuningCandidate&) = default;
};
// "split_k tile_m=64, tile_n=128".
std::string to_string(const TuningCandidate& candidate);

// Describes what is tuned.
struct TuningProblem {
  std::string name;  // "4096x4096x4096": M, N and K of a product, else the shape of the result
  double flops = 0;  // of a call
  // The cost model's choice comes first, then the others, those that it expects most of first.
  std::vector<TuningCandidate> candidates;
};

// When a session ends, and how a candidate is measured.
struct TuningRules {
  int runs = 10;               // of a candidate, in turns with the best; the median counts
  int grid_iterations = 20;    // in the order of the candidates; then at random
  int fewest_iterations = 10;  // before it may converge
  int stable_iterations = 5;   // without an improvement, and it has converged
  double improvement = 0.01;   // the least share of the best time that is one
  // Another candidate must gain this share of the model's time to be kept: what power leaves of a
  // GPU's clocks changes which of two nearly equal tiles is faster.
  double least_gain = 0.02;
  int most_iterations = 50;   // it stops
  int most_random = 20;       // configurations after the grid, and it stops
  double hopeless = 3;        // times the best time, and a candidate is run once
  bool measures_all = false;  // every candidate, in their order: no rule but the time ends it
  double seconds = 0;         // that a session may take, about; 0: as long as it needs
  uint64_t seed = 1;          // of the random order
};

// A candidate with what it took.
struct TuningIteration {
  TuningCandidate candidate;  // that was measured
  double us = 0;              // of a call; 0: it failed
  double best_us = 0;         // of the best so far, measured in turns with it
  bool is_new_best = false;   // by at least the improvement that the rules ask for
  std::string error = {};     // why it failed
};

// Finds the fastest candidate by measuring. It knows no device: what runs a call, and the clock,
// are given. One iteration measures one candidate, so that a caller can show, keep and stop between
// them.
class AdaptivePerformanceTuner {
 public:
  // Microseconds of one run. What it throws is the candidate's error, but for kinds cancelled and
  // device_lost, which end the session.
  using Measure = std::function<double(const TuningCandidate&)>;
  using Clock = std::function<double()>;  // seconds, from any moment on
  using Say = std::function<void(std::string_view message)>;

  // Without a clock the host's, without `say` nothing is said.
  explicit AdaptivePerformanceTuner(Measure measure, const TuningRules& rules = {},
                                    Clock clock = {}, Say say = {});

  // Says "Starting adaptive tuning for problem: MxNxK". `earlier` are iterations of a session that
  // was cut off: they count, and are not repeated. Kind value without a candidate.
  void start_tuning_session(TuningProblem problem,
                            const std::vector<TuningIteration>& earlier = {});
  // Measures one more candidate. False, once, when the session is over: then the best has been held
  // against what the cost model chooses, and "Tuning converged after N iterations. Best
  // performance: X TFLOPS" is said, or why it stopped.
  bool tune_iteration();

  // Returns what it measures next unless the session ends before, in that order, up to `most`
  // candidates.
  std::vector<TuningCandidate> upcoming(size_t most) const;

  // Returns those of earlier sessions too, in their order.
  const std::vector<TuningIteration>& iterations() const { return iterations_; }
  bool is_over() const { return is_over_; }  // for whatever reason
  // Whether it is over as the best did not improve any more.
  bool has_converged() const { return has_converged_; }
  bool was_cut_off() const { return was_cut_off_; }  // its time was over
  // Why the session is over: "converged", "every candidate is measured", ...
  const std::string& end() const { return end_; }
  // The fastest, and its time and that of the model's choice, measured in turns at the end. The
  // model's choice itself unless another is faster by `least_gain`. Kind value before any
  // candidate ran, with the error of the first.
  const TuningCandidate& best() const;
  double best_us() const { return best_us_; }    // of a call
  double model_us() const { return model_us_; }  // the same of the model's choice
  // Returns the rate of the best; 0 if nothing ran.
  double best_tflops() const { return best_us_ > 0 ? problem_.flops / best_us_ / 1e6 : 0; }
  // A guess of how long the session takes from now on, at most what is left of its time.
  double seconds_left() const;
  // How much of it is done, from 0 to 1.
  double fraction() const;

 private:
  static constexpr size_t kNone = size_t(-1);
  size_t next_candidate(const std::vector<bool>& is_tried, int done) const;
  size_t next_candidate() const { return next_candidate(is_tried_, int(iterations_.size())); }
  std::string reason_to_end() const;
  TuningIteration measure(const TuningCandidate& candidate);
  void take(size_t candidate, const TuningIteration& iteration);
  void finish();
  double spent() const { return clock_() - start_; }
  int iterations_ahead() const;

  const Measure measure_;
  const TuningRules rules_;
  const Clock clock_;
  const Say say_;
  TuningProblem problem_;
  std::vector<TuningIteration> iterations_;
  std::vector<bool> is_tried_;  // of each candidate
  size_t best_ = kNone;
  double best_us_ = 0, model_us_ = 0;
  int since_improvement_ = 0, earlier_ = 0;
  double start_ = 0;
  bool is_over_ = false, has_converged_ = false, was_cut_off_ = false;
  std::string end_;
};

}  // namespace tensorcraft::diagnose
