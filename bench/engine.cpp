// SPDX-License-Identifier: Apache-2.0
#include "bench/engine.hpp"

#include "bench/machine.hpp"
#include "bench/peer.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/nearest.hpp"
#include "tensorcraft/ops/all.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

namespace tensorcraft::bench {
namespace {

constexpr int kFewestRuns = 5, kMaxRuns = 100;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Candidate {
  Row row;
  Call call;
  double rough_us = 0;  // about, of one call
  std::unique_ptr<Timed> timed;
};

// One case: its arrays, its candidates and the rows they become.
class CaseRun {
 public:
  CaseRun(const Case& c, const Settings& settings)
      : case_(c),
        settings_(settings),
        device_(device_info(settings.device)),
        request_(find_operator(c.request.op), c.request, device_),
        explanation_(request_.explain()) {
    if (settings.device.is_cuda()) own_stream_.emplace(settings.device.index);
    stream_ = own_stream_ ? own_stream_->ref() : StreamRef();
  }

  std::vector<Row> run(Runner& runner, double warmup_s, const std::function<void(double)>& at) {
    prepare();
    time_roughly();
    choose_timing();
    warm_up(warmup_s);
    measure(runner, at);
    std::vector<Row> rows;
    rows.reserve(candidates_.size());
    for (Candidate& candidate : candidates_) rows.push_back(std::move(candidate.row));
    return rows;
  }
  // A row of the case, with nothing measured.
  Row row(std::string_view candidate, std::string_view variant = {}) const {
    Row row{.op = case_.request.op,
            .name = case_.name(),
            .shape = case_.shape(),
            .dtype = case_.request.dtype,
            .options = case_.options(),
            .group = case_.group,
            .candidate = std::string(candidate),
            .variant = std::string(variant)};
    row.chosen = row.is_ours() && variant == chosen_;
    row.bytes = explanation_.cost.bytes;
    row.flops = explanation_.cost.flops;
    row.floor_us = explanation_.floor_us;
    return row;
  }

 private:
  void prepare();
  void add_ours();
  void add_peers();
  void time_roughly();
  void choose_timing();
  void warm_up(double seconds);
  void measure(Runner& runner, const std::function<void(double)>& at);
  // Runs `action` for a candidate that works; what it throws becomes its error.
  template <class Action>
  void attempt(Candidate& candidate, Action action) {
    if (!candidate.row.error.empty()) return;
    try {
      action();
    } catch (const std::exception& error) {
      candidate.row.error = error.what();
    }
  }

  const Case& case_;
  const Settings& settings_;
  const DeviceInfo& device_;
  const diagnose::Request request_;
  const op::Explanation explanation_;
  std::string_view chosen_ = explanation_.variant;
  std::optional<Stream> own_stream_;
  StreamRef stream_;
  std::optional<Operands> operands_;
  Rotation rotation_;
  std::vector<Candidate> candidates_;
};

void CaseRun::prepare() {
  const size_t bytes = Operands::bytes_of(request_), cache = cache_bytes(device_);
  const int copies = settings_.warm ? 1 : copies_for(bytes, cache);
  operands_.emplace(case_, request_, stream_, copies);
  rotation_.copies = copies;
  add_ours();
  add_peers();
  const bool cold = !settings_.warm && size_t(copies) * bytes >= 2 * cache;
  for (Candidate& candidate : candidates_) candidate.row.cache = cold ? "cold" : "warm";
}

void CaseRun::add_ours() {
  for (const op::Considered& c : explanation_.variants) {
    const bool wanted = settings_.variant.empty()    ? c.variant.name == chosen_
                        : settings_.variant == "all" ? c.accepted
                                                     : settings_.variant == c.variant.name ||
                                                           settings_.variant == c.variant.alias;
    if (!wanted) continue;
    Candidate& added = candidates_.emplace_back(row(kOurs, c.variant.name));
    if (!c.accepted) added.row.error = "declines: " + c.reason;
    // A call may be tuned: then it has a Config that its variant's name does not say.
    const bool is_tuned = settings_.variant.empty() && explanation_.tuned;
    added.call = [this, name = is_tuned ? std::string_view() : c.variant.name](int copy) {
      operands_->run(copy, name);
    };
  }
  if (!candidates_.empty()) return;
  if (!settings_.variant.empty() && settings_.variant != "all") {
    std::string names;
    std::vector<std::string_view> known{"all"};
    for (const op::Considered& c : explanation_.variants) {
      known.push_back(c.variant.name);
      names.append(names.empty() ? "" : ", ").append(c.variant.name);
    }
    fail(ErrorKind::value, case_.request.op, ": no variant of ", settings_.device.type,
         " is named \"", settings_.variant, "\"; there are ", names, " and all",
         did_you_mean(settings_.variant, known));
  }
  candidates_.emplace_back(row(kOurs)).row.error = "no variant accepts";
}

void CaseRun::add_peers() {
  const auto& names = settings_.peers;
  const bool all = std::ranges::find(names, "all") != names.end();
  for (const Peer& peer : peers()) {
    const bool named = std::ranges::find(names, peer.name) != names.end();
    if (!all && !named) continue;
    Candidate added{row(peer.name), {}};
    attempt(added, [&] {
      PeerCall opened = peer.open({*operands_, explanation_.cost, settings_.device, stream_,
                                   [this](int copy) { operands_->run(copy, chosen_); }});
      added.call = std::move(opened.call);
      added.row.note = std::move(opened.note);
      if (added.call) return;
      added.row.error = std::string(kNotAvailable) + opened.reason;
      if (!opened.applies && !named) added.row.candidate.clear();
    });
    if (!added.row.candidate.empty()) candidates_.push_back(std::move(added));
  }
}

// The first calls compile and allocate; the one after them says how long one takes.
void CaseRun::time_roughly() {
  for (Candidate& candidate : candidates_)
    attempt(candidate, [&] {
      const Method method = stream_.handle() ? Method::events : Method::wall;
      candidate.call(0);
      const auto start = Clock::now();
      candidate.call(operands_->copies() - 1);
      candidate.rough_us = seconds_since(start) * 1e6;
      if (method == Method::events) {
        stream_.synchronize();
        const auto timed = make_timed(candidate.call, rotation_, method, stream_, 0);
        candidate.rough_us = std::min(timed->microseconds(), timed->microseconds());
      }
    });
}

void CaseRun::choose_timing() {
  Method method = stream_.handle() ? Method::events : Method::wall;
  for (const Candidate& c : candidates_) {
    const bool is_timed = c.row.error.empty() && c.row.is_ours() && stream_.handle();
    if (is_timed && is_short(c.row.bytes, c.rough_us)) method = Method::graph;
  }
  for (Candidate& c : candidates_)
    attempt(c, [&] {
      c.timed = make_timed(c.call, rotation_, method, stream_, c.rough_us);
      c.row.timing = to_string(c.timed->method());
    });
  for (Candidate& c : candidates_)
    if (c.row.timing.empty()) c.row.timing = to_string(method);
}

void CaseRun::warm_up(double seconds) {
  const auto start = Clock::now();
  do {
    for (Candidate& candidate : candidates_)
      if (seconds_since(start) < seconds)
        attempt(candidate, [&] { candidate.timed->microseconds(); });
  } while (seconds_since(start) < seconds &&
           std::ranges::any_of(candidates_, [](const auto& c) { return c.row.error.empty(); }));
}

void CaseRun::measure(Runner& runner, const std::function<void(double)>& at) {
  std::vector<Measured> all;
  std::vector<Candidate*> measured;
  int total = 0, done = 0;
  for (Candidate& candidate : candidates_)
    attempt(candidate, [&] {
      const auto start = Clock::now();
      candidate.timed->microseconds();
      const int affordable = int(settings_.seconds / std::max(seconds_since(start), 1e-6));
      const int runs = settings_.repetitions > 0 ? settings_.repetitions
                                                 : std::clamp(affordable, kFewestRuns, kMaxRuns);
      total += runs;
      measured.push_back(&candidate);
      const std::string name = candidate.row.candidate + ' ' + candidate.row.variant;
      all.push_back({case_.request.op + ' ' + case_.name() + ' ' + name, runs,
                     [&] {
                       at(double(done++) / total);
                       return candidate.timed->microseconds();
                     },
                     candidate.row.candidate == "copy" ? 0 : candidate.row.flops});
    });
  if (all.empty()) return;
  runner.run(all);
  for (size_t i = 0; i < all.size(); ++i) {
    measured[i]->row.error = all[i].error;
    if (all[i].error.empty()) set_times(measured[i]->row, std::move(all[i].samples));
  }
}

void check_peers(const std::vector<std::string>& names) {
  std::string known = "all, none";
  std::vector<std::string_view> words{"all", "none"};
  for (const Peer& peer : peers()) {
    known.append(", ").append(peer.name);
    words.push_back(peer.name);
  }
  for (const std::string& name : names)
    if (name != "all" && name != "none" &&
        std::ranges::find(peers(), name, &Peer::name) == peers().end())
      fail(ErrorKind::value, "bench: no peer is named \"", name, "\"; there are ", known,
           did_you_mean(name, words));
}

bool is_known(const Case& c) {
  try {
    find_operator(c.request.op);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// A case that cannot even be set up.
Row failed_row(const Case& c, const std::exception& error) {
  Row row{.op = c.request.op,
          .name = c.name(),
          .shape = c.shape(),
          .dtype = c.request.dtype,
          .options = c.options(),
          .group = c.group,
          .candidate = std::string(kOurs),
          .error = error.what()};
  return row;
}

}  // namespace

Results run(const std::vector<Case>& cases, const Settings& settings, Runner& runner,
            const std::function<void(const Progress&)>& progress) {
  if (settings.device.type == DeviceType::simt)
    fail(ErrorKind::value, "bench: simt emulates a GPU, and its time says nothing of one");
  check_peers(settings.peers);
  Results results = describe(settings, "tensorcraft bench");
  bool first = true;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const std::string what = c.request.op + ' ' + c.name();
    const auto at = [&](double part, const Results* so_far = nullptr) {
      progress({i, cases.size(), (double(i) + part) / double(cases.size()), what, so_far});
    };
    at(0, &results);
    if (cases.size() > 1 && !is_known(c)) {
      results.skipped.push_back(what + ": there is no operator " + c.request.op);
      continue;
    }
    try {
      CaseRun one(c, settings);
      auto rows = one.run(runner, settings.warmup_s * (first ? 1 : 0.1), at);
      std::ranges::move(rows, std::back_inserter(results.rows));
      first = false;
    } catch (const std::exception& error) {
      if (cases.size() == 1) throw;
      results.rows.push_back(failed_row(c, error));
    }
  }
  return results;
}

}  // namespace tensorcraft::bench
