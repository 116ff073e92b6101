// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/diagnose/tune.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/interrupt.hpp"
#include "tensorcraft/core/log.hpp"
#include "tensorcraft/core/to_number.hpp"
#include "tensorcraft/core/usable_cores.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/diagnose/timing.hpp"
#include "tensorcraft/jit/warmup.hpp"
#include "tensorcraft/op/tuning/configuration_selector.hpp"
#include "tensorcraft/op/launch/plan.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>

namespace tensorcraft::diagnose {
namespace {

constexpr double kSlowerByRung = 0.05;  // than the rung above, if nothing is predicted
constexpr double kFasterByRule = 0.1;   // at full confidence
constexpr std::string_view kReference = "reference";

// A candidate with the time that it is expected to take; only their order counts.
struct Ranked {
  TuningCandidate candidate;
  double us = 0;
};

int number_in(std::string_view config, std::string_view name) {
  for (const op::Setting& s : op::to_settings("tune", "config", config))
    if (s.name == name) return to_number<int>(s.value).value_or(0);
  return 0;
}

bool is_tile_of(const op::SelectedConfiguration& rule, std::string_view config) {
  return number_in(config, "tile_m") == rule.configuration.block_m &&
         number_in(config, "tile_n") == rule.configuration.block_n;
}

// The least time that a rung predicts; 1 if none predicts any.
double fastest_prediction(const op::Explanation& e) {
  double least = std::numeric_limits<double>::infinity();
  for (const op::Considered& c : e.variants)
    for (const op::Weighed& w : c.candidates)
      if (c.accepted && w.us > 0) least = std::min(least, w.us);
  return least < std::numeric_limits<double>::infinity() ? least : 1;
}

// Does it run such a call, and is it more than what others are held against?
bool is_tuned(const op::Explanation& e, const op::Considered& c) {
  if (!c.accepted) return false;
  const auto others = std::ranges::count_if(e.variants, [](const op::Considered& other) {
    return other.accepted && other.variant.name != kReference;
  });
  return c.variant.name != kReference || others == 0;
}

std::vector<Ranked> ranked(const op::Explanation& e) {
  std::vector<Ranked> all;
  const double least = fastest_prediction(e);
  int rung = 0;
  for (const op::Considered& c : e.variants) {
    if (!is_tuned(e, c)) continue;
    const double expected = least * (1 + kSlowerByRung * rung++);
    const std::string name(c.variant.name);
    int later = 0;
    for (const op::Weighed& w : c.candidates) {
      if (w.option.empty()) continue;
      const double unpredicted = expected * (1 + kSlowerByRung * (w.is_chosen ? 0 : ++later));
      all.push_back({{name, w.option}, w.us > 0 ? w.us : unpredicted});
    }
    if (all.empty() || all.back().candidate.variant != name) all.push_back({{name}, expected});
  }
  return all;
}

TuningCandidate choice_of_model(const op::Explanation& e) {
  TuningCandidate model{std::string(e.variant)};
  for (const op::Considered& c : e.variants)
    for (const op::Weighed& w : c.candidates)
      if (c.variant.name == e.variant && w.is_chosen) model.config = w.option;
  return model;
}

// Where the operator takes a Config; none: it has no such option.
std::optional<size_t> settings_of(const op::Description& d) {
  const auto found =
      std::ranges::find(d.options, op::ParameterKind::settings, &op::Parameter::kind);
  if (found == d.options.end()) return {};
  return size_t(found - d.options.begin());
}

// The options of a call with the Config of a candidate.
std::vector<op::Value> options_with(const op::Description& d, std::span<const op::Value> options,
                                    const TuningCandidate& candidate) {
  std::vector<op::Value> all(options.begin(), options.end());
  if (const auto settings = settings_of(d); settings && !candidate.config.empty()) {
    all.resize(std::max(all.size(), *settings + 1));
    all[*settings] = std::string_view(candidate.config);
  }
  return all;
}

// Runs candidates of one call and times them, all in the same way.
class Bench {
 public:
  Bench(const op::Operator& op, std::span<const TuningArrays> copies, StreamRef stream,
        const op::Cost& cost)
      : op_(op), copies_(copies), stream_(stream), cost_(cost), rotation_{int(copies.size())} {}

  double microseconds(const TuningCandidate& candidate) {
    check_interrupt();
    const auto found = std::ranges::find(known_, candidate, &Known::candidate);
    if (found == known_.end()) return add(candidate);
    std::rotate(found, found + 1, known_.end());  // the last is the one used last
    return known_.back().timed->microseconds();
  }

 private:
  struct Known {
    TuningCandidate candidate;
    std::unique_ptr<Timed> timed;
  };
  static constexpr size_t kMostKnown = 3;    // the best, the model's choice, and the one measured
  static constexpr double kLongUs = 1000;    // that a graph of many calls takes too long for
  static constexpr double kFarTooSlow = 10;  // times the fastest: the host's clock says it

  // The first call compiles and allocates; the one after it says how long one takes.
  double add(const TuningCandidate& candidate) {
    const Call call = [this, candidate](int copy) { run(copy, candidate); };
    call(0);
    if (stream_.handle()) stream_.synchronize();
    const auto start = std::chrono::steady_clock::now();
    call(int(copies_.size()) - 1);
    if (stream_.handle()) stream_.synchronize();
    const double rough =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    if (least_rough_ > 0 && rough > std::max(kLongUs, kFarTooSlow * least_rough_)) return rough;
    least_rough_ = least_rough_ > 0 ? std::min(least_rough_, rough) : rough;
    if (!method_) method_ = method_for(rough);
    if (known_.size() == kMostKnown) known_.erase(known_.begin());
    const Method method = *method_ == Method::graph && rough > kLongUs ? Method::events : *method_;
    known_.push_back({candidate, make_timed(call, rotation_, method, stream_, rough)});
    return known_.back().timed->microseconds();
  }

  Method method_for(double rough_us) const {
    if (!stream_.handle()) return Method::wall;
    return is_short(cost_.bytes, rough_us) ? Method::graph : Method::events;
  }

  void run(int copy, const TuningCandidate& candidate) const {
    const TuningArrays& arrays = copies_[size_t(copy)];
    const std::vector<op::Value> options =
        options_with(op_.description(), arrays.options, candidate);
    op::Arguments arguments{arrays.inputs, options, candidate.variant};
    if (stream_.handle()) arguments.stream = stream_;
    op_.run(arrays.outputs, arguments);
  }

  const op::Operator& op_;
  const std::span<const TuningArrays> copies_;
  const StreamRef stream_;
  const op::Cost cost_;
  Rotation rotation_;
  std::optional<Method> method_;
  double least_rough_ = 0;
  std::vector<Known> known_;
};

// "4096x4096x1024" of a product, "8192x1024" of another result.
std::string problem_text(const op::Explanation& e, const TensorView& out) {
  if (e.cost.m > 0) return join(e.cost.m, "x", e.cost.n, "x", e.cost.k);
  std::string text;
  for (const int64_t size : out.shape()) text.append(text.empty() ? "" : "x").append(join(size));
  return text.empty() ? "1" : text;
}

// A folder that cannot be written to is no reason not to tune.
std::unique_ptr<op::TuningDatabase> open_database(const std::string& device) {
  try {
    return std::make_unique<op::TuningDatabase>(op::TuningDatabase::path_of(device));
  } catch (const Error& e) {
    log_warn(join("what is tuned is not kept: ", e.what()));
    return nullptr;
  }
}

std::vector<TuningIteration> earlier_iterations(const op::TuningDatabase& database,
                                                const op::TuningKey& key) {
  std::vector<TuningIteration> all;
  for (const op::Trial& t : database.trials(key))
    all.push_back({.candidate = {t.variant, t.config}, .us = t.us});
  return all;
}

void refuse_fixed(const op::Operator& op, const TuningArrays& arrays) {
  const op::Description& d = op.description();
  const auto settings = settings_of(d);
  if (settings && *settings < arrays.options.size() && arrays.options[*settings].index() != 0)
    fail(ErrorKind::value, d.name, ": tuning finds ", d.options[*settings].name, "; leave it out");
}

int64_t seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

std::vector<TuningCandidate> tuning_candidates(const op::Explanation& e,
                                               const op::SelectedConfiguration* rule) {
  if (e.variant.empty()) return {};
  std::vector<Ranked> all = ranked(e);
  if (rule)
    for (Ranked& one : all)
      if (is_tile_of(*rule, one.candidate.config)) one.us *= 1 - kFasterByRule * rule->confidence;
  std::ranges::stable_sort(all, {}, &Ranked::us);
  std::vector<TuningCandidate> candidates{choice_of_model(e)};
  for (Ranked& one : all)
    if (std::ranges::find(candidates, one.candidate) == candidates.end())
      candidates.push_back(std::move(one.candidate));
  return candidates;
}

std::vector<jit::KernelKey> tuning_kernels(const op::Operator& op, const TuningArrays& arrays,
                                           std::span<const TuningCandidate> candidates,
                                           const DeviceInfo& device) {
  const op::WithoutTuned as_named;
  std::vector<jit::KernelKey> all;
  for (const TuningCandidate& one : candidates) {
    const std::vector<op::Value> options = options_with(op.description(), arrays.options, one);
    const op::Explanation e =
        op.explain(arrays.outputs, {arrays.inputs, options, one.variant}, device);
    for (const op::Considered& c : e.variants)
      if (c.variant.name == one.variant && c.plan)
        for (const op::Step& step : c.plan->steps()) all.push_back(step.kernel);
  }
  return all;
}

namespace {

// Holds what is asked about a call before it is tuned.
struct Question {
  op::TuningKey key;
  TuningProblem problem;
  op::Cost cost;
};

Question question_of(const op::Operator& op, const TuningArrays& arrays, const DeviceInfo& device) {
  refuse_fixed(op, arrays);
  const op::WithoutTuned as_modelled;
  const op::Explanation e = op.explain(arrays.outputs, {arrays.inputs, arrays.options}, device);
  const op::Description& d = op.description();
  if (e.call.empty())
    fail(ErrorKind::unsupported, d.name,
         ": an option of the call leaves the choice to the cost model, so it is not tuned");
  if (e.variant.empty()) fail(ErrorKind::unsupported, d.name, ": no variant accepts this problem");
  std::optional<op::SelectedConfiguration> rule;
  if (e.cost.m > 0)
    rule = op::ConfigurationSelector(op::gpu_of(device))
               .select({e.cost.m, e.cost.n, e.cost.k, arrays.inputs[0].dtype()},
                       op::tuning_history(device, d.name));
  return {{device.name, std::string(d.name), e.call, op::version_of(d.variants)},
          {problem_text(e, arrays.outputs[0]), e.cost.flops,
           tuning_candidates(e, rule ? &*rule : nullptr)},
          e.cost};
}

// Compiles what a session measures next, as many kernels at a time as there are cores, and not
// beside a measurement, which it would disturb.
class Compilation {
 public:
  Compilation(const op::Operator& op, const TuningArrays& arrays, const DeviceInfo& device)
      : op_(op), arrays_(arrays), device_(device) {}

  void prepare(const AdaptivePerformanceTuner& tuner) {
    if (!device_.device.is_cuda() || prepared_-- > 0) return;
    const std::vector<TuningCandidate> next = tuner.upcoming(size_t(usable_cores()));
    prepared_ = int(next.size()) - 1;
    // A kernel that does not compile says so when its candidate is measured.
    jit::warmup(tuning_kernels(op_, arrays_, next, device_), device_.device,
                [](const jit::WarmupStep&) { check_interrupt(); });
  }

 private:
  const op::Operator& op_;
  const TuningArrays& arrays_;
  const DeviceInfo& device_;
  int prepared_ = 0;  // candidates that follow
};

TuneReport known_report(const Question& question, const op::TunedRow& row) {
  return {row, question.problem.candidates[0], question.problem.name, "known",
          question.cost.flops / row.entry.us / 1e6};
}

TuneReport report_of(const Question& question, const AdaptivePerformanceTuner& tuner) {
  const TuningCandidate& best = tuner.best();
  return {{question.key,
           {best.variant, best.config, tuner.best_us(), tuner.model_us()},
           int(tuner.iterations().size()),
           seconds_since_1970()},
          question.problem.candidates[0],
          question.problem.name,
          tuner.end(),
          tuner.best_tflops(),
          tuner.iterations()};
}

// The default stream of a GPU can neither be recorded nor told from the host, which has none.
class OwnStream {
 public:
  OwnStream(Device device, StreamRef given) : ref_(given) {
    if (!device.is_cuda() || given.handle()) return;
    synchronize(device);  // what the arrays come from
    own_.emplace(device.index);
    ref_ = own_->ref();
  }
  StreamRef ref() const { return ref_; }

 private:
  std::optional<Stream> own_;
  StreamRef ref_;
};

}  // namespace

TuneReport tune(const op::Operator& op, std::span<const TuningArrays> copies, StreamRef stream,
                const TuneSettings& settings) {
  const DeviceInfo& device = device_info(copies[0].outputs[0].device());
  const Question question = question_of(op, copies[0], device);
  const op::TuningKey& key = question.key;
  const auto take = [&](const op::TunedEntry& entry) {
    op::set_tuned(device, key.op, op.description().variants, key.call, entry);
  };
  const std::unique_ptr<op::TuningDatabase> database = open_database(device.name);
  std::vector<TuningIteration> earlier;
  if (database) {
    if (settings.again) database->remove_trials(key);
    earlier = earlier_iterations(*database, key);
    // Trials that are left are of a session that was cut off.
    if (const auto known = database->result(key); known && earlier.empty() && !settings.again) {
      take(known->entry);
      return known_report(question, *known);
    }
  }

  const OwnStream own(device.device, stream);
  Bench bench(op, copies, own.ref(), question.cost);
  AdaptivePerformanceTuner tuner(
      [&](const TuningCandidate& candidate) { return bench.microseconds(candidate); },
      settings.rules, {}, settings.say);
  tuner.start_tuning_session(question.problem, earlier);
  Compilation compilation(op, copies[0], device);
  for (compilation.prepare(tuner); tuner.tune_iteration(); compilation.prepare(tuner)) {
    const TuningIteration& last = tuner.iterations().back();
    if (database)
      database->add_trial(key, {last.candidate.variant, last.candidate.config, last.us});
    if (settings.progress) settings.progress(tuner);
  }
  TuneReport report = report_of(question, tuner);
  if (database) {
    database->set_result(report.row);
    if (!tuner.was_cut_off()) database->remove_trials(key);
  }
  take(report.row.entry);
  return report;
}

}  // namespace tensorcraft::diagnose
