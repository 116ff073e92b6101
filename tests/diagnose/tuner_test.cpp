// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/diagnose/tuner.hpp"

#include "tensorcraft/core/error.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tensorcraft::diagnose {
namespace {

using test::expect_error;

// A profiler that knows what each candidate takes. Candidate i is named "i".
class FakeProfiler {
 public:
  explicit FakeProfiler(std::vector<double> us) : us_(std::move(us)) {}

  TuningProblem problem() const {
    TuningProblem problem{"64x32x16", 2e6, {}};
    for (size_t i = 0; i < us_.size(); ++i) problem.candidates.push_back({std::to_string(i)});
    return problem;
  }
  double measure(const TuningCandidate& candidate) {
    const int i = std::stoi(candidate.variant);
    runs_.push_back(i);
    now_ += 0.001;
    const double us = us_[size_t(i)];
    if (us < 0) fail(ErrorKind::internal, "candidate ", i, " does not run");
    return us * noise(++calls_[i]);
  }
  AdaptivePerformanceTuner tuner(const TuningRules& rules = {}) {
    return AdaptivePerformanceTuner([this](const TuningCandidate& c) { return measure(c); }, rules,
                                    [this] { return now_; },
                                    [this](std::string_view text) { said_.emplace_back(text); });
  }
  const std::vector<int>& runs() const { return runs_; }
  const std::vector<std::string>& said() const { return said_; }
  // Every third run of each candidate takes five times as long.
  void add_noise() { is_noisy_ = true; }

 private:
  double noise(int call) const { return is_noisy_ && call % 3 == 0 ? 5 : 1; }
  std::vector<double> us_;
  std::vector<int> runs_;
  std::map<int, int> calls_;
  std::vector<std::string> said_;
  double now_ = 0;
  bool is_noisy_ = false;
};

std::vector<std::string> order_of(const AdaptivePerformanceTuner& tuner) {
  std::vector<std::string> order;
  for (const TuningIteration& one : tuner.iterations()) order.push_back(one.candidate.variant);
  return order;
}

void run_to_the_end(AdaptivePerformanceTuner& tuner) {
  while (tuner.tune_iteration()) {
  }
}

// Each one 2 % faster than the one before: no candidate is stable.
std::vector<double> always_better(int count) {
  std::vector<double> us;
  double next = 1000;
  for (int i = 0; i < count; ++i) us.push_back(next *= 0.98);
  return us;
}

TEST(Tuner, FindsTheOptimumThatAFakeProfilerHas) {
  FakeProfiler fake({100, 90, 130, 70, 95, 40, 120, 80});
  AdaptivePerformanceTuner tuner = fake.tuner();
  tuner.start_tuning_session(fake.problem());
  run_to_the_end(tuner);
  EXPECT_EQ(tuner.best().variant, "5");
  EXPECT_EQ(tuner.best_us(), 40);
  EXPECT_EQ(tuner.model_us(), 100);
  EXPECT_EQ(tuner.end(), "every candidate is measured");
  EXPECT_FALSE(tuner.has_converged());
  EXPECT_TRUE(tuner.is_over());
  EXPECT_FALSE(tuner.tune_iteration());
}

TEST(Tuner, MeasuresTenRunsInTurnsWithTheBestAndTakesTheMedian) {
  FakeProfiler fake({100, 80});
  fake.add_noise();
  AdaptivePerformanceTuner tuner = fake.tuner();
  tuner.start_tuning_session(fake.problem());
  EXPECT_TRUE(tuner.tune_iteration());
  EXPECT_EQ(fake.runs(), std::vector<int>(10, 0));
  EXPECT_TRUE(tuner.tune_iteration());
  for (size_t i = 10; i < 30; i += 2) {
    EXPECT_EQ(fake.runs()[i], 1);
    EXPECT_EQ(fake.runs()[i + 1], 0);
  }
  EXPECT_EQ(fake.runs().size(), 30u);
  EXPECT_EQ(tuner.iterations()[1].us, 80) << "the median is none of the runs that took longer";
  EXPECT_EQ(tuner.iterations()[1].best_us, 100);
}

TEST(Tuner, SearchesTheGridForTwentyIterationsThenAtRandom) {
  FakeProfiler fake(always_better(60));
  AdaptivePerformanceTuner first = fake.tuner({.improvement = -100, .seed = 7});
  first.start_tuning_session(fake.problem());
  run_to_the_end(first);
  const std::vector<std::string> order = order_of(first);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(order[size_t(i)], std::to_string(i));
  std::vector<std::string> rest(order.begin() + 20, order.end());
  EXPECT_FALSE(std::ranges::is_sorted(rest, {}, [](const auto& s) { return std::stoi(s); }));
  EXPECT_EQ(std::set(order.begin(), order.end()).size(), order.size()) << "nothing is repeated";

  AdaptivePerformanceTuner again = fake.tuner({.improvement = -100, .seed = 7}),
                           other = fake.tuner({.improvement = -100, .seed = 8});
  again.start_tuning_session(fake.problem());
  run_to_the_end(again);
  EXPECT_EQ(order_of(again), order);
  other.start_tuning_session(fake.problem());
  run_to_the_end(other);
  EXPECT_NE(order_of(other), order);
}

TEST(Tuner, KnowsWhatItMeasuresNextUntilItEnds) {
  FakeProfiler fake(always_better(60));
  AdaptivePerformanceTuner tuner = fake.tuner();
  tuner.start_tuning_session(fake.problem());
  for (int i = 0; i < 15; ++i) ASSERT_TRUE(tuner.tune_iteration());
  const std::vector<TuningCandidate> next = tuner.upcoming(10);  // of the grid, and at random
  ASSERT_EQ(next.size(), 10u);
  EXPECT_EQ(next[0].variant, "15");
  EXPECT_EQ(tuner.upcoming(100).size(), 25u) << "20 of the grid and 20 at random, less 15";
  run_to_the_end(tuner);
  const std::vector<std::string> order = order_of(tuner);
  for (size_t i = 0; i < next.size(); ++i) EXPECT_EQ(next[i].variant, order.at(15 + i)) << i;
  EXPECT_TRUE(tuner.upcoming(10).empty());

  FakeProfiler stable(std::vector<double>(60, 100.0));
  AdaptivePerformanceTuner converged = stable.tuner();
  converged.start_tuning_session(stable.problem());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(converged.tune_iteration());
  EXPECT_TRUE(converged.upcoming(10).empty()) << "it has converged, though nobody asked yet";
}

TEST(Tuner, ConvergesAfterTenIterationsOfWhichFiveGainLessThanAHundredth) {
  // The last gain of more is iteration 3; a gain of half a hundredth is none.
  std::vector<double> us(40, 200);
  us[0] = 100, us[1] = 95, us[2] = 80, us[5] = 79.6;
  FakeProfiler fake(us);
  AdaptivePerformanceTuner tuner = fake.tuner();
  tuner.start_tuning_session(fake.problem());
  run_to_the_end(tuner);
  EXPECT_TRUE(tuner.has_converged());
  EXPECT_EQ(tuner.iterations().size(), 10u);
  EXPECT_EQ(tuner.best().variant, "5");
}

TEST(Tuner, CandidatesThatFailAreNoSignOfConvergence) {
  std::vector<double> us(30, -1);
  us[0] = 100, us[20] = 50;
  FakeProfiler fake(us);
  TuningRules rules;
  rules.grid_iterations = 30;
  AdaptivePerformanceTuner tuner = fake.tuner(rules);
  tuner.start_tuning_session(fake.problem());
  run_to_the_end(tuner);
  EXPECT_EQ(tuner.best().variant, "20");
}

TEST(Tuner, DoesNotConvergeWhileItGains) {
  std::vector<double> us(40, 200);
  us[0] = 100, us[8] = 80, us[12] = 70;
  FakeProfiler fake(us);
  AdaptivePerformanceTuner tuner = fake.tuner();
  tuner.start_tuning_session(fake.problem());
  run_to_the_end(tuner);
  EXPECT_TRUE(tuner.has_converged());
  EXPECT_EQ(tuner.iterations().size(), 18u) << "five after the gain of the thirteenth";
}

TEST(Tuner, StopsAtFiftyIterations) {
  FakeProfiler fake(always_better(200));
  TuningRules rules;
  rules.most_random = 1000;
  rules.improvement = -100;  // everything is a gain
  AdaptivePerformanceTuner tuner = fake.tuner(rules);
  tuner.start_tuning_session(fake.problem());
  run_to_the_end(tuner);
  EXPECT_EQ(tuner.iterations().size(), 50u);
  EXPECT_EQ(tuner.end(), "50 iterations are done");
}

TEST(Tuner, StopsAtTwentyRandomConfigurationsAfterTheGrid) {
  FakeProfiler fake(always_better(200));
  TuningRules rules;
  rules.improvement = -100;
  AdaptivePerformanceTuner tuner = fake.tuner(rules);
  tuner.start_tuning_session(fake.problem());
  run_to_the_end(tuner);
  EXPECT_EQ(tuner.iterations().size(), 40u);
  EXPECT_EQ(tuner.end(), "20 random configurations are measured");
}

TEST(Tuner, SaysExactlyWhereItBeginsAndWhereItConverged) {
  std::vector<double> us(20, 200);
  us[0] = 160;
  FakeProfiler fake(us);
  AdaptivePerformanceTuner tuner = fake.tuner();
  tuner.start_tuning_session(fake.problem());
  ASSERT_EQ(fake.said().size(), 1u);
  EXPECT_EQ(fake.said()[0], "Starting adaptive tuning for problem: 64x32x16");
  run_to_the_end(tuner);
  ASSERT_EQ(fake.said().size(), 2u);
  EXPECT_EQ(fake.said()[1],
            "Tuning converged after 10 iterations. Best performance: 0.0125 TFLOPS");
}

TEST(Tuner, GoesOnWithASessionThatWasCutOffAndRepeatsNothing) {
  FakeProfiler fake(always_better(60));
  const TuningRules rules{.improvement = -100};
  AdaptivePerformanceTuner whole = fake.tuner(rules);
  whole.start_tuning_session(fake.problem());
  run_to_the_end(whole);
  for (const size_t cut : {size_t(1), size_t(7), size_t(19), size_t(20), size_t(33), size_t(40)}) {
    FakeProfiler other(always_better(60));
    AdaptivePerformanceTuner tuner = other.tuner(rules);
    const auto& all = whole.iterations();
    tuner.start_tuning_session(other.problem(), {all.begin(), all.begin() + long(cut)});
    EXPECT_EQ(tuner.iterations().size(), cut);
    run_to_the_end(tuner);
    EXPECT_EQ(order_of(tuner), order_of(whole)) << "cut off after " << cut;
    EXPECT_EQ(tuner.best(), whole.best());
  }
}

TEST(Tuner, EarlierTrialsOfCandidatesThatAreGoneDoNotCount) {
  FakeProfiler fake({100, 50});
  AdaptivePerformanceTuner tuner = fake.tuner();
  tuner.start_tuning_session(fake.problem(), {{.candidate = {"gone"}, .us = 1}});
  EXPECT_TRUE(tuner.iterations().empty());
  run_to_the_end(tuner);
  EXPECT_EQ(tuner.best().variant, "1");
}

TEST(Tuner, ACandidateThatFailsIsPassedBy) {
  FakeProfiler fake({100, -1, 60});
  AdaptivePerformanceTuner tuner = fake.tuner();
  tuner.start_tuning_session(fake.problem());
  run_to_the_end(tuner);
  EXPECT_EQ(tuner.iterations()[1].us, 0);
  EXPECT_EQ(tuner.iterations()[1].error, "candidate 1 does not run");
  EXPECT_EQ(tuner.best().variant, "2");
  FakeProfiler none({-1, -1});
  AdaptivePerformanceTuner empty = none.tuner();
  empty.start_tuning_session(none.problem());
  run_to_the_end(empty);
  expect_error(
      ErrorKind::value, [&] { empty.best(); },
      "tuning: 64x32x16: no candidate ran; the first says: candidate 0 does not run");
}

TEST(Tuner, TheModelsChoiceThatFailsIsNoBest) {
  FakeProfiler fake({-1, 100});
  AdaptivePerformanceTuner tuner = fake.tuner();
  tuner.start_tuning_session(fake.problem());
  run_to_the_end(tuner);
  EXPECT_EQ(tuner.best().variant, "1");
  EXPECT_EQ(tuner.best_us(), 100);
}

TEST(Tuner, KeepsTheModelsChoiceUnlessAnotherIsTwoHundredthsFaster) {
  FakeProfiler fake({100, 98.5});
  AdaptivePerformanceTuner tuner = fake.tuner();
  tuner.start_tuning_session(fake.problem());
  run_to_the_end(tuner);
  EXPECT_EQ(tuner.best().variant, "0");
  EXPECT_EQ(tuner.best_us(), tuner.model_us());
  FakeProfiler faster({100, 97.5});
  AdaptivePerformanceTuner other = faster.tuner();
  other.start_tuning_session(faster.problem());
  run_to_the_end(other);
  EXPECT_EQ(other.best().variant, "1");
}

TEST(Tuner, AHopelessCandidateRunsOnce) {
  FakeProfiler fake({100, 301, 299});
  AdaptivePerformanceTuner tuner = fake.tuner();
  tuner.start_tuning_session(fake.problem());
  run_to_the_end(tuner);
  EXPECT_EQ(std::ranges::count(fake.runs(), 1), 1);
  EXPECT_EQ(std::ranges::count(fake.runs(), 2), 10);
  EXPECT_EQ(tuner.iterations()[1].us, 301);
}

TEST(Tuner, EndsWhenItsTimeIsOverAndSaysHowMuchIsLeft) {
  FakeProfiler fake(always_better(200));
  TuningRules rules;
  rules.seconds = 0.1;  // a run takes a thousandth
  AdaptivePerformanceTuner tuner = fake.tuner(rules);
  tuner.start_tuning_session(fake.problem());
  EXPECT_NEAR(tuner.seconds_left(), 0.1, 1e-9);
  EXPECT_EQ(tuner.fraction(), 0);
  tuner.tune_iteration();
  EXPECT_NEAR(tuner.seconds_left(), 0.09, 1e-9);
  EXPECT_NEAR(tuner.fraction(), 0.1, 1e-9);
  run_to_the_end(tuner);
  EXPECT_TRUE(tuner.was_cut_off());
  EXPECT_EQ(tuner.iterations().size(), 6u);  // 10 runs, then 20 each
  EXPECT_EQ(tuner.fraction(), 1);
  EXPECT_EQ(fake.said().back().find("Tuning stopped after 6 iterations, as its time is over. Best "
                                    "performance: "),
            0u);
}

TEST(Tuner, MeasuresAllIfThatIsAskedFor) {
  FakeProfiler fake(std::vector<double>(70, 100));
  TuningRules rules;
  rules.measures_all = true;
  AdaptivePerformanceTuner tuner = fake.tuner(rules);
  tuner.start_tuning_session(fake.problem());
  run_to_the_end(tuner);
  EXPECT_EQ(tuner.iterations().size(), 70u);
}

TEST(Tuner, ALostDeviceOrAnInterruptEndsTheSession) {
  for (const ErrorKind kind : {ErrorKind::device_lost, ErrorKind::cancelled}) {
    AdaptivePerformanceTuner tuner([&](const TuningCandidate&) -> double { fail(kind, "over"); });
    tuner.start_tuning_session({"1", 1, {{"a"}}});
    expect_error(kind, [&] { tuner.tune_iteration(); }, "over");
  }
  AdaptivePerformanceTuner tuner([](const TuningCandidate&) { return 1.0; });
  expect_error(
      ErrorKind::value, [&] { tuner.start_tuning_session({"1x1x1", 1, {}}); },
      "tuning: 1x1x1 has no candidate");
}

}  // namespace
}  // namespace tensorcraft::diagnose
