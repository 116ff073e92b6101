// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/diagnose/tuner.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/diagnose/timing.hpp"

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <random>
#include <sstream>
#include <utility>

namespace tensorcraft::diagnose {
namespace {

double host_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr const char* kTimeIsOver = "its time is over";
constexpr const char* kConverged = "converged";

bool ends_session(ErrorKind kind) {
  return kind == ErrorKind::cancelled || kind == ErrorKind::device_lost;
}

// "12.5", "0.000314".
std::string number(double value) {
  std::ostringstream out;
  out << std::setprecision(4) << value;
  return std::move(out).str();
}

double median(std::vector<double> runs) { return times_of(std::move(runs)).median; }

}  // namespace

std::string to_string(const TuningCandidate& candidate) {
  return candidate.config.empty() ? candidate.variant : candidate.variant + " " + candidate.config;
}

AdaptivePerformanceTuner::AdaptivePerformanceTuner(Measure measure, const TuningRules& rules,
                                                   Clock clock, Say say)
    : measure_(std::move(measure)),
      rules_(rules),
      clock_(clock ? std::move(clock) : host_seconds),
      say_(say ? std::move(say) : [](std::string_view) {}) {}

void AdaptivePerformanceTuner::start_tuning_session(TuningProblem problem,
                                                    const std::vector<TuningIteration>& earlier) {
  if (problem.candidates.empty())
    fail(ErrorKind::value, "tuning: ", problem.name, " has no candidate");
  problem_ = std::move(problem);
  iterations_.clear();
  is_tried_.assign(problem_.candidates.size(), false);
  best_ = kNone;
  best_us_ = model_us_ = 0;
  since_improvement_ = 0;
  is_over_ = has_converged_ = was_cut_off_ = false;
  end_.clear();
  start_ = clock_();
  say_("Starting adaptive tuning for problem: " + problem_.name);
  for (const TuningIteration& one : earlier) {
    const auto found = std::ranges::find(problem_.candidates, one.candidate);
    const auto i = size_t(found - problem_.candidates.begin());
    if (found != problem_.candidates.end() && !is_tried_[i]) take(i, one);
  }
  earlier_ = int(iterations_.size());
}

// The first 20 in their order, then one of the others at random: the same for the same seed,
// whether the session was cut off before or not.
size_t AdaptivePerformanceTuner::next_candidate(const std::vector<bool>& is_tried, int done) const {
  std::vector<size_t> open;
  for (size_t i = 0; i < is_tried.size(); ++i)
    if (!is_tried[i]) open.push_back(i);
  if (open.empty()) return kNone;
  if (rules_.measures_all || done < rules_.grid_iterations) return open[0];
  std::mt19937_64 random(rules_.seed + uint64_t(done));
  return open[random() % open.size()];
}

std::vector<TuningCandidate> AdaptivePerformanceTuner::upcoming(size_t most) const {
  if (is_over_ || !reason_to_end().empty()) return {};
  std::vector<TuningCandidate> all;
  std::vector<bool> is_tried = is_tried_;
  most = std::min(most, size_t(iterations_ahead()));
  for (int done = int(iterations_.size()); all.size() < most; ++done) {
    const size_t next = next_candidate(is_tried, done);
    is_tried[next] = true;
    all.push_back(problem_.candidates[next]);
  }
  return all;
}

std::string AdaptivePerformanceTuner::reason_to_end() const {
  const int done = int(iterations_.size());
  if (next_candidate() == kNone) return "every candidate is measured";
  if (rules_.seconds > 0 && done > 0 && spent() >= rules_.seconds) return kTimeIsOver;
  if (rules_.measures_all) return {};
  if (done >= rules_.fewest_iterations && since_improvement_ >= rules_.stable_iterations)
    return kConverged;
  if (done >= rules_.most_iterations) return join(done, " iterations are done");
  if (done >= rules_.grid_iterations + rules_.most_random)
    return join(rules_.most_random, " random configurations are measured");
  return {};
}

// In turns with the best, so that what drifts meets both.
TuningIteration AdaptivePerformanceTuner::measure(const TuningCandidate& candidate) {
  TuningIteration iteration{candidate};
  try {
    std::vector<double> own, of_best;
    for (int run = 0; run < rules_.runs; ++run) {
      own.push_back(measure_(candidate));
      if (best_ == kNone) continue;
      if (run == 0 && own[0] > rules_.hopeless * best_us_) break;
      of_best.push_back(measure_(problem_.candidates[best_]));
    }
    iteration.us = median(std::move(own));
    iteration.best_us = median(std::move(of_best));
  } catch (const Error& error) {
    if (ends_session(error.kind())) throw;
    iteration.error = error.what();
  }
  return iteration;
}

void AdaptivePerformanceTuner::take(size_t candidate, const TuningIteration& measured) {
  TuningIteration iteration = measured;
  is_tried_[candidate] = true;
  const double before = iteration.best_us > 0 ? iteration.best_us : best_us_;
  const bool ran = iteration.us > 0;
  iteration.is_new_best = ran && (best_ == kNone || iteration.us < before);
  const bool improves = ran && (best_ == kNone || iteration.us < before * (1 - rules_.improvement));
  if (improves)
    since_improvement_ = 0;
  else if (ran)  // one that cannot run says nothing of those that can
    ++since_improvement_;
  if (iteration.is_new_best) best_ = candidate;
  if (ran) best_us_ = iteration.is_new_best ? iteration.us : before;
  iterations_.push_back(std::move(iteration));
}

bool AdaptivePerformanceTuner::tune_iteration() {
  if (is_over_) return false;
  end_ = reason_to_end();
  if (!end_.empty()) {
    finish();
    return false;
  }
  const size_t next = next_candidate();
  take(next, measure(problem_.candidates[next]));
  return true;
}

// A candidate is kept only if it is faster than the model's choice when both run in turns: one that
// was lucky once is not.
void AdaptivePerformanceTuner::finish() {
  is_over_ = true;
  has_converged_ = end_ == kConverged;
  was_cut_off_ = end_ == kTimeIsOver;
  if (best_ != kNone) {
    const TuningCandidate& model = problem_.candidates[0];
    const bool is_model = best_ == 0;
    std::vector<double> own, of_model;
    try {
      for (int run = 0; run < rules_.runs; ++run) {
        own.push_back(measure_(problem_.candidates[best_]));
        if (!is_model) of_model.push_back(measure_(model));
      }
    } catch (const Error& error) {
      if (ends_session(error.kind())) throw;
      of_model.clear();
    }
    best_us_ = own.empty() ? best_us_ : median(std::move(own));
    model_us_ = of_model.empty() ? best_us_ : median(std::move(of_model));
    if (!is_model && model_us_ > 0 && iterations_[0].us > 0 &&
        best_us_ > model_us_ * (1 - rules_.least_gain)) {
      best_ = 0;
      best_us_ = model_us_;
    }
  }
  const std::string count = join(iterations_.size(), " iterations");
  say_(join(has_converged_ ? "Tuning converged after " + count
                           : "Tuning stopped after " + count + ", as " + end_,
            ". Best performance: ", number(best_tflops()), " TFLOPS"));
}

const TuningCandidate& AdaptivePerformanceTuner::best() const {
  if (best_ == kNone)
    fail(ErrorKind::value, "tuning: ", problem_.name, ": no candidate ran",
         iterations_.empty() ? "" : "; the first says: " + iterations_[0].error);
  return problem_.candidates[best_];
}

// The most that may follow.
int AdaptivePerformanceTuner::iterations_ahead() const {
  const int open = int(std::ranges::count(is_tried_, false));
  if (is_over_) return 0;
  if (rules_.measures_all) return open;
  const int done = int(iterations_.size());
  const int limit =
      std::min(rules_.most_iterations, rules_.grid_iterations + rules_.most_random) - done;
  return std::clamp(limit, 0, open);
}

double AdaptivePerformanceTuner::seconds_left() const {
  const int measured = int(iterations_.size()) - earlier_;
  const double guess = measured > 0 ? spent() / measured * iterations_ahead() : 0;
  if (rules_.seconds <= 0) return guess;
  const double rest = std::max(rules_.seconds - spent(), 0.0);
  return measured > 0 ? std::min(guess, rest) : rest;
}

double AdaptivePerformanceTuner::fraction() const {
  if (is_over_) return 1;
  const double done = double(iterations_.size()), all = done + iterations_ahead();
  const double by_count = all > 0 ? done / all : 0;
  return rules_.seconds > 0 ? std::min(1.0, std::max(by_count, spent() / rules_.seconds))
                            : by_count;
}

}  // namespace tensorcraft::diagnose
