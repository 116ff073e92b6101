// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/immortal.hpp"
#include "tensorcraft/op/launch/plan.hpp"
#include "tensorcraft/op/launch/simt.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// A ladder of plan.h as the library sees it: what each rung says of a call, and the plan it gives.
namespace tensorcraft::op {

// One variant of an operator as front ends show it.
struct VariantInfo {
  // alias: another name of it; spills: why its kernel may spill, empty if it may not.
  std::string_view name, alias, idea, spills;
  DeviceType device;
  std::string_view file = {};  // of its device code, "tensorcraft/ops/gemm/08_tma.cuh"
};

// Rungs look at this view of a checked call, and the dtypes of their kernels; made once a call.
template <class Params, class Given>
struct RungCall {
  RungCall(const Params& p, const Given& g, std::initializer_list<DType> t)
      : params(p), given(g), num_types(t.size()) {
    std::copy(t.begin(), t.end(), types);
  }
  Params params;
  Given given;
  DType types[kMaxKernelTypes];
  size_t num_types;
};

// The answer of a rung: why it refuses, or the step it gives and perhaps why a later rung is
// better.
struct Answer {
  std::string_view refusal, preference;
  Step step;
};

// A Config that the rung weighed, see Candidate in rung.h, as text of what differs between them.
struct Weighed {
  std::string config;       // "block_m = 128, block_n = 256"
  double us = 0;            // predicted; 0: the rung compares without times
  int64_t rounds = 0;       // of blocks on the busiest multiprocessor
  double busy = 0;          // the share of that time in which multiprocessors compute, on average
  bool is_chosen = false;   // it is the Config of the plan
  std::string option = {};  // of the operator's settings, that fixes it; empty: there is none
};

// A rung of a ladder whose types are known to its functions alone.
struct LadderItem {
  VariantInfo info;
  const jit::Rung& rung;
  const void* typed;  // the Rung of plan.h
  Answer (*ask)(const LadderItem&, const void* rung_call, const Gpu&);
  void (*add)(Plan&, const Answer&, const LadderItem&, const void* rung_call, const Gpu&);
  std::vector<Weighed> (*weigh)(const LadderItem&, const void* rung_call, const Gpu&,
                                const ConfigBytes* chosen);
  std::string (*option)(const ConfigBytes&);  // as Weighed::option; null if there is none
};

// The fields of Configs in which they differ, for each of them; all fields if there is but one.
std::vector<std::string> differing_fields(const jit::Rung& rung, std::span<const ConfigBytes> all);

// The device code of a kernel by its place: type "InRegisters" for "in_registers". It stays when
// the process ends, as Immortal says.
const jit::Rung& make_rung(std::string_view folder, std::string_view name, std::string_view file,
                           std::span<const ConfigField> fields, std::string_view config = "Config",
                           std::function<ConfigBytes(const ConfigBytes&)> general = nullptr);

// The ladder of an operator whose checked calls are Problems. Without rungs if it is default made.
template <class Problem>
struct Ladder {
  Immortal<const LadderItem*> items;  // best first
  void (*describe)(const Problem&, std::byte* rung_call) = nullptr;
  // Adds to the plan of a rung what its choice cannot: tensor maps, a workspace, further steps.
  void (*complete)(Plan&, std::string_view rung, const Problem&, const DeviceInfo&) = nullptr;

  // Returns the ladder without rungs of other names than these.
  Ladder only(std::span<const std::string_view> names) const {
    std::vector<const LadderItem*> kept;
    for (const LadderItem* item : items)
      if (std::ranges::find(names, item->info.name) != names.end()) kept.push_back(item);
    return {kept, describe, complete};
  }
  // The device code of a variant, for plans that have it as a further step.
  const jit::Rung& rung(std::string_view name) const {
    return (*std::ranges::find(items, name, [](const LadderItem* i) { return i->info.name; }))
        ->rung;
  }
};

inline constexpr size_t kMaxRungCallBytes = 2048;

// One call to a ladder; what it is made from must outlive it.
template <class Problem>
class LadderCall {
 public:
  LadderCall(const Ladder<Problem>& ladder, const Problem& problem, const DeviceInfo& device)
      : ladder_(ladder), problem_(problem), device_(device), gpu_(gpu_of(device)) {
    if (ladder.describe) ladder.describe(problem, bytes_);
  }
  Answer ask(const LadderItem& item) const { return item.ask(item, bytes_, gpu_); }
  // Returns what the rung weighs; `plan`: what it gave, null if it refused.
  std::vector<Weighed> weigh(const LadderItem& item, const Plan* plan) const {
    return item.weigh(item, bytes_, gpu_, plan ? &plan->main().kernel.config : nullptr);
  }
  // The plan of an answer that is no refusal.
  Plan plan(const LadderItem& item, const Answer& answer) const {
    Plan plan;
    item.add(plan, answer, item, bytes_, gpu_);
    if (ladder_.complete) ladder_.complete(plan, item.info.name, problem_, device_);
    return plan;
  }

 private:
  const Ladder<Problem>& ladder_;
  const Problem& problem_;
  const DeviceInfo& device_;
  Gpu gpu_;
  alignas(64) std::byte bytes_[kMaxRungCallBytes];
};

// A rung that computes a call; without a name there is none.
struct Chosen {
  std::string_view variant;
  Plan plan;
};

// The first rung that takes the problem and has no later one that is better, or the one that
// `forced` names.
template <class Problem>
Chosen first_of_ladder(const Ladder<Problem>& ladder, const Problem& problem,
                       const DeviceInfo& device, std::string_view forced) {
  Chosen chosen;
  const bool is_simt = device.device.type == DeviceType::simt;
  const LadderCall<Problem> call(ladder, problem, device);
  for (const LadderItem* item : ladder.items) {
    const VariantInfo& v = item->info;
    if (!forced.empty() && v.name != forced && v.alias != forced) continue;
    const Answer answer = call.ask(*item);
    if (!answer.refusal.empty() || (forced.empty() && !answer.preference.empty())) continue;
    chosen.plan = call.plan(*item, answer);
    if (is_simt && not_on_simt(chosen.plan)) continue;
    chosen.variant = v.name;
    return chosen;
  }
  return chosen;
}

namespace detail {

template <class Problem, class Params, class Given>
Problem problem_of(RungCall<Params, Given> (*)(const Problem&));

// As jit::Rung::general.
template <class Params, class Given, class Config>
std::function<ConfigBytes(const ConfigBytes&)> general_of(const Rung<Params, Given, Config>& rung) {
  if (!rung.general) return nullptr;
  return [general = rung.general](const ConfigBytes& bytes) {
    Config config;
    std::memcpy(&config, bytes.data(), sizeof(config));
    return config_bytes(general(config));
  };
}

template <class Params, class Given, class Config, auto option_of>
struct LadderFunctions {
  using Call = RungCall<Params, Given>;
  static_assert(std::is_trivially_copyable_v<Call> && sizeof(Call) <= kMaxRungCallBytes);
  static const Rung<Params, Given, Config>& rung_of(const LadderItem& item) {
    return *static_cast<const Rung<Params, Given, Config>*>(item.typed);
  }
  static Answer ask(const LadderItem& item, const void* rung_call, const Gpu& gpu) {
    const Call& call = *static_cast<const Call*>(rung_call);
    const Choice<Config> choice =
        check_start(rung_of(item).choose(call.params, call.given, gpu), gpu);
    Answer answer{choice.refusal, choice.preference, {}};
    if (!answer.refusal.empty()) return answer;
    Start<Config> start = choice.start;
    start.min_blocks = blocks_with_room(start.min_blocks, start.config.threads, gpu.threads_per_sm);
    answer.step = make_step(item.rung, {call.types, call.num_types}, start);
    answer.step.counter_at = rung_of(item).counter_at;
    return answer;
  }
  static void add(Plan& plan, const Answer& answer, const LadderItem& item, const void* rung_call,
                  const Gpu& gpu) {
    const Call& call = *static_cast<const Call*>(rung_call);
    Params params = call.params;
    if (rung_of(item).adapt) rung_of(item).adapt(params, call.given, gpu);
    plan.add(answer.step, params);
  }
  static std::vector<Weighed> weigh(const LadderItem& item, const void* rung_call, const Gpu& gpu,
                                    const ConfigBytes* chosen) {
    const Call& call = *static_cast<const Call*>(rung_call);
    Candidates<Config> candidates;
    if (rung_of(item).weigh) rung_of(item).weigh(candidates, call.params, call.given, gpu);
    std::vector<ConfigBytes> configs;
    for (const auto& c : candidates) configs.push_back(config_bytes(c.config));
    const std::vector<std::string> texts = differing_fields(item.rung, configs);
    std::vector<Weighed> all;
    for (const auto& c : candidates) {
      const size_t i = all.size();
      all.push_back({texts[i], c.us, c.rounds, c.busy, chosen && configs[i] == *chosen});
      if constexpr (option_of != nullptr) all.back().option = option_of(c.config);
    }
    return all;
  }
  static std::string option(const ConfigBytes& bytes) {
    Config config;
    std::memcpy(&config, bytes.data(), sizeof(config));
    return option_of(config);
  }
};

}  // namespace detail

// The fields of a Config that has a count of threads alone.
inline constexpr ConfigField kThreads[] = {{"threads"}};

// The ladder of an operator's folder. describe: const Problem& -> RungCall; rungs: the array of
// plan.h; complete: as in Ladder; option_of: const Config& -> the value of the operator's settings
// that fixes it. `fields` are all fields of the Config, whose type is named `config`.
template <auto describe, const auto& rungs, auto complete = nullptr, auto option_of = nullptr,
          size_t n>
auto make_ladder(std::string_view folder, const ConfigField (&fields)[n],
                 std::string_view config = "Config") {
  using Problem = decltype(detail::problem_of(describe));
  return [&]<class Params, class Given, class Config, size_t count>(
             const Rung<Params, Given, Config>(&ladder)[count]) {
    static_assert(sizeof(Config) == n * sizeof(int), "fields must name all fields of Config");
    using Functions = detail::LadderFunctions<Params, Given, Config, option_of>;
    std::string (*option)(const ConfigBytes&) = nullptr;
    if constexpr (option_of != nullptr) option = Functions::option;
    std::vector<const LadderItem*> items;
    // Variants of one kernel share its identity, by which what is compiled is found.
    const auto kernel_of = [&](const auto& rung) -> const jit::Rung& {
      const std::string_view name = rung.kernel.empty() ? rung.name : rung.kernel;
      for (const LadderItem* item : items)
        if (item->rung.name == name) return item->rung;
      return make_rung(folder, name, rung.file, fields, config, detail::general_of(rung));
    };
    for (const auto& rung : ladder) {
      const jit::Rung& kernel = kernel_of(rung);
      items.push_back(new LadderItem{
          {rung.name, rung.alias, rung.idea, rung.spills, DeviceType::cuda, kernel.header},
          kernel,
          &rung,
          Functions::ask,
          Functions::add,
          Functions::weigh,
          option});
    }
    return Ladder<Problem>{items,
                           [](const Problem& problem, std::byte* memory) {
                             new (memory) RungCall<Params, Given>(describe(problem));
                           },
                           complete};
  }(rungs);
}

}  // namespace tensorcraft::op
