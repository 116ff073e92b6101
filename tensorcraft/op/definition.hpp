// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/operator.hpp"
#include "tensorcraft/op/option.hpp"
#include "tensorcraft/op/plan_cache.hpp"
#include "tensorcraft/op/simt.hpp"
#include "tensorcraft/op/trace.hpp"

#include <algorithm>
#include <utility>

// How an operator is written: one Definition object in <op>.cpp, from which come the typed C++
// functions (run, allocate) and the registry entry (OperatorOf). The worked example is
// ops/l2_normalize.
namespace tensorcraft::op {

// A typed call: `outputs` and `inputs` in the order of the definition.
template <class Options>
struct Call {
  std::span<const TensorView> outputs, inputs;
  const Options& options;
  const TensorView& out() const { return outputs[0]; }
  const TensorView& in(size_t i = 0) const { return inputs[i]; }
};

// An output beyond the first: a field of Options that the caller may point at memory.
template <class Options>
struct ExtraOutput {
  OutputInfo info;
  std::optional<TensorView> Options::* field;
};

// Everything an operator is. Options has the fields `std::string_view variant`,
// `std::optional<StreamRef> stream` and `std::source_location where = current()`, the line that
// errors name, besides its own.
template <class Problem, class Options>
struct Definition {
  std::string_view name, group, summary, details;
  Immortal<std::string_view> aliases = {};
  Immortal<Parameter> inputs;  // a call may leave out optional ones at the end
  Immortal<Option<Options>> options = {};
  std::string_view out_name = "out";  // of the first output, as infer() names it
  std::string_view out_doc;
  Immortal<ExtraOutput<Options>> extra_outputs = {};
  Immortal<DType> dtypes;
  bool in_place = false;     // out may be exactly one of the inputs
  bool any_address = false;  // elements need not lie at a multiple of their size
  // Specs of what the call returns; checks what the shapes of the outputs depend on. Null: one
  // output like the first input.
  std::vector<OutputSpec> (*infer)(std::span<const TensorView> inputs, const Options&) = nullptr;
  // The one check of all arguments; afterwards everything trusts the Problem.
  Problem (*check)(const Call<Options>&);
  // The work. Null: every tensor is moved once, and each element of the first input takes one flop.
  Cost (*cost)(const Problem&) = nullptr;
  // How the call's shapes are read, for explain. Null: they say it themselves.
  std::string (*sizes)(const Problem&) = nullptr;
  Ladder<Problem> ladder = {};
  std::span<const HostVariant<Problem>> host = {};  // best first; at least one takes each problem
};

// The tensors of one call with their names, without the heap.
class NamedTensors {
 public:
  static constexpr size_t kMax = CallKey::kMaxTensors;
  struct Entry {
    std::string_view name;
    const TensorView* view;
  };
  NamedTensors() {}  // clears no entry, which a small call would feel
  void add(std::string_view name, const TensorView& view) { all_[count_++] = {name, &view}; }
  std::span<const Entry> entries() const { return {all_, count_}; }

 private:
  union {
    Entry all_[kMax];
  };
  size_t count_ = 0;
};

// What every operator checks the same way: devices equal, memory there and elements aligned,
// outputs writable and not overlapping themselves, an input (unless equal to it where `in_place`)
// or another output.
void check_tensors(std::string_view op, const NamedTensors& outputs, const NamedTensors& inputs,
                   bool in_place, bool any_address);
// The part of it that needs no real memory: devices equal, elements aligned.
void check_places(std::string_view op, const NamedTensors& outputs, const NamedTensors& inputs,
                  bool any_address);
// The work of moving every tensor once.
Cost moving_cost(const NamedTensors& outputs, const NamedTensors& inputs);
// Outputs have a size that can be counted.
void check_sizes(std::string_view op, std::span<const OutputSpec> specs);
// The stream a call runs on.
StreamRef resolve_stream(const std::optional<StreamRef>& given, Device device);
// Compiles if needed and enqueues; on the SIMT device runs to the end.
void launch_plan(const Plan& plan, Device device, StreamRef stream, std::string_view op);
// The error if no variant takes a call.
[[noreturn]] void no_variant(std::string_view op, std::string_view forced,
                             std::span<const Considered> considered);
// The fields of a Config: "threads = 256, vector = 4".
std::string config_text(const Step& step);
double floor_us(const Cost& cost, const DeviceInfo& device, DType dtype);
// "cuda:0", or "sm_90a" if the device is known by its architecture alone.
std::string place_of(const DeviceInfo& device);

// Does a device run kernels?
constexpr bool runs_kernels(DeviceType device) { return device != DeviceType::cpu; }

// Every variant of the operator, best first.
template <class Problem, class Options>
std::vector<VariantInfo> all_variants(const Definition<Problem, Options>& def) {
  std::vector<VariantInfo> all;
  for (const auto* item : def.ladder.items) all.push_back(item->info);
  for (const auto& v : def.host) all.push_back(v.info());
  return all;
}

// What the variants of the device say, best first: `explain` shows all, the errors quote them.
template <class Problem, class Options>
std::vector<Considered> consider(const Definition<Problem, Options>& def, const Problem& problem,
                                 const DeviceInfo& device) {
  std::vector<Considered> all;
  const bool is_simt = device.device.type == DeviceType::simt;
  if (runs_kernels(device.device.type)) {
    const LadderCall<Problem> call(def.ladder, problem, device);
    for (const LadderItem* item : def.ladder.items) {
      const Answer answer = call.ask(*item);
      const bool accepts = answer.refusal.empty();
      Considered& one = all.emplace_back(item->info, accepts,
                                         std::string(accepts ? answer.preference : answer.refusal));
      if (accepts) one.plan = call.plan(*item, answer);
      one.candidates = call.weigh(*item, accepts ? &*one.plan : nullptr);
      if (accepts && is_simt) require_simt_instance(one);
    }
  } else {
    for (const auto& v : def.host) {
      const std::string_view refusal = v.refusal_of(problem);
      all.push_back({v.info(), refusal.empty(), std::string(refusal), std::nullopt});
    }
  }
  return all;
}

// Adds the variant that `forced` names if it is one of another device; fails if there is none.
void add_forced(std::vector<Considered>& all, std::span<const VariantInfo> variants,
                std::string_view op, std::string_view forced, Device device);

// A rung that computes a call; without a name there is none.
struct Chosen {
  std::string_view variant;
  Plan plan;
};

// The first rung that takes the problem and has no later one that is better, or the one that
// `forced` names.
template <class Problem, class Options>
Chosen first_of_ladder(const Definition<Problem, Options>& def, const Problem& problem,
                       const DeviceInfo& device, std::string_view forced) {
  Chosen chosen;
  const bool is_simt = device.device.type == DeviceType::simt;
  const LadderCall<Problem> call(def.ladder, problem, device);
  for (const LadderItem* item : def.ladder.items) {
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

// The error that says why no variant of the device takes the problem.
template <class Problem, class Options>
[[noreturn]] void fail_to_choose(const Definition<Problem, Options>& def, const Problem& problem,
                                 const DeviceInfo& device, std::string_view forced) {
  std::vector<Considered> all = consider(def, problem, device);
  if (!forced.empty()) add_forced(all, all_variants(def), def.name, forced, device.device);
  no_variant(def.name, forced, all);
}

// The rung of first_of_ladder(), or the error.
template <class Problem, class Options>
Chosen choose_rung(const Definition<Problem, Options>& def, const Problem& problem,
                   const DeviceInfo& device, std::string_view forced) {
  Chosen chosen = first_of_ladder(def, problem, device, forced);
  if (chosen.variant.empty()) fail_to_choose(def, problem, device, forced);
  return chosen;
}

// The first host variant that takes the problem, or the one that `forced` names, or the error.
template <class Problem, class Options>
const HostVariant<Problem>& choose_on_host(const Definition<Problem, Options>& def,
                                           const Problem& problem, std::string_view forced) {
  for (const auto& v : def.host)
    if ((forced.empty() || v.name == forced) && v.refusal_of(problem).empty()) return v;
  fail_to_choose(def, problem, device_info(Device::cpu()), forced);
}

struct CallTensors {
  NamedTensors outputs, inputs;
};
template <class Problem, class Options>
CallTensors tensors_of(const Definition<Problem, Options>& def, const Call<Options>& call) {
  CallTensors all;
  auto& [outputs, inputs] = all;
  outputs.add(def.out_name, call.outputs[0]);
  for (const auto& extra : def.extra_outputs)
    if (const auto& view = call.options.*extra.field) outputs.add(extra.info.name, *view);
  const NamedValues* names = nullptr;  // the caller's own
  for (const auto& o : def.options)
    if (o.named) names = &(call.options.*o.named);
  size_t own = 0;  // inputs before those that the caller names
  while (own < def.inputs.size() && !def.inputs[own].named) ++own;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    inputs.add(i < own ? def.inputs[i].name : array_name(*names, i - own), call.inputs[i]);
  for (const auto& o : def.options)
    if (const auto* tensor = o.tensor.of(call.options)) inputs.add(o.parameter.name, *tensor);
  return all;
}

// With the tensors in the order of remember(). A warm call needs no names, so it makes none.
template <class Problem, class Options>
CallKey key_of(const Definition<Problem, Options>& def, const Call<Options>& call) {
  const Options& options = call.options;
  CallKey key;
  key.add(uint64_t(reinterpret_cast<uintptr_t>(&def)));
  key.add(options.variant);
  for (const auto& extra : def.extra_outputs) key.add(options.*extra.field);
  for (const auto& o : def.options) o.add_to(key, options);
  key.add_tensor(call.out());
  for (const auto& extra : def.extra_outputs)
    if (const auto& view = options.*extra.field) key.add_tensor(*view);
  for (const TensorView& in : call.inputs) key.add_tensor(in);
  for (const auto& o : def.options)
    if (const auto* tensor = o.tensor.of(options)) key.add_tensor(*tensor);
  return key;
}

// Remembers a call that ran.
template <class Problem, class Options>
void remember(const Definition<Problem, Options>& def, const Call<Options>& call,
              const CallKey& key, std::string_view variant, const Plan& plan) {
  size_t i = 0;
  Options options = call.options;
  const TensorView out = shifted(key, i++);
  for (const auto& extra : def.extra_outputs)
    if (options.*extra.field) shift(options.*extra.field, key, i++);
  const size_t num_outputs = i;
  std::vector<TensorView> inputs;
  inputs.reserve(call.inputs.size());
  for (size_t n = 0; n < call.inputs.size(); ++n) inputs.push_back(shifted(key, i++));
  for (const auto& o : def.options)
    if (o.tensor.of(options)) shift(o.tensor.in(options), key, i++);
  size_t free_numbers = 0;
  for (const auto& o : def.options)
    if (o.free && whole_number_of(options.*o.free))
      (options.*o.free).number = shifted_number(key, free_numbers++);
  const Problem problem = def.check({{&out, 1}, inputs, options});
  auto remembered = std::make_unique<RememberedCall>(key, num_outputs, variant, plan);
  const Chosen again = first_of_ladder(def, problem, device_info(out.device()), variant);
  if (!again.variant.empty()) remembered->find_values(key, again.plan);
  PlanCache::of_this_thread().remember(key, std::move(remembered));
}

// Runs a checked problem by code of the host.
template <class Problem, class Options>
void run_on_host(const Definition<Problem, Options>& def, const Call<Options>& call,
                 const Problem& problem) {
  const HostVariant<Problem>& chosen = choose_on_host(def, problem, call.options.variant);
  if (call.out().size() == 0) return;
  const Device device = call.out().device();
  const StreamRef stream = resolve_stream(call.options.stream, device);
  const Trace::Scope scope(Trace::active(), def.name, chosen.name, device, stream);
  cuda::warn_of_fallback();
  chosen.run(problem);
}

// Checks, chooses and runs. Does nothing where the output is empty. Remembers the call under `key`
// unless that is null.
template <class Problem, class Options>
void run_checked(const Definition<Problem, Options>& def, const Call<Options>& call,
                 const CallKey* key) {
  const CallTensors tensors = tensors_of(def, call);
  check_tensors(def.name, tensors.outputs, tensors.inputs, def.in_place, def.any_address);
  const Problem problem = def.check(call);
  const Device device = call.out().device();
  if (!runs_kernels(device.type)) return run_on_host(def, call, problem);
  const Chosen chosen = choose_rung(def, problem, device_info(device), call.options.variant);
  if (call.out().size() == 0) return;
  const StreamRef stream = resolve_stream(call.options.stream, device);
  const Trace::Scope scope(Trace::active(), def.name, chosen.variant, device, stream);
  launch_plan(chosen.plan, device, stream, def.name);
  if (key) remember(def, call, *key, chosen.variant, chosen.plan);
}

// Repeats a call that is remembered, else runs it.
template <class Problem, class Options>
void repeat_or_run(const Definition<Problem, Options>& def, std::span<const TensorView> outputs,
                   std::span<const TensorView> inputs, const Options& options) {
  const Call<Options> call{outputs, inputs, options};
  const Device device = call.out().device();
  if (!device.is_cuda()) return run_checked(def, call, nullptr);
  const CallKey key = key_of(def, call);
  PlanCache& cache = PlanCache::of_this_thread();
  const auto [plan, variant] = cache.repeat(key);
  if (!plan) return run_checked(def, call, cache.wants(key) ? &key : nullptr);
  const StreamRef stream = resolve_stream(options.stream, device);
  const Trace::Scope scope(Trace::active(), def.name, variant, device, stream);
  launch_plan(*plan, device, stream, def.name);
}

template <class Problem, class Options>
void run(const Definition<Problem, Options>& def, std::span<const TensorView> outputs,
         std::span<const TensorView> inputs, const Options& options) {
  at_line(options.where, [&] { repeat_or_run(def, outputs, inputs, options); });
}

template <class Problem, class Options>
void run(const Definition<Problem, Options>& def, const TensorView& out,
         std::initializer_list<TensorView> inputs, const Options& options) {
  run(def, std::span(&out, 1), std::span(inputs.begin(), inputs.size()), options);
}

template <class Problem, class Options>
std::vector<OutputSpec> infer(const Definition<Problem, Options>& def,
                              std::span<const TensorView> in, const Options& options) {
  if (def.infer) return def.infer(in, options);
  return {{def.out_name, in[0].dtype(), in[0].shape()}};
}

template <class Problem, class Options>
std::vector<Tensor> allocate_and_run(const Definition<Problem, Options>& def,
                                     std::span<const TensorView> in, Options options) {
  const Device device = in[0].device();
  const StreamRef stream = resolve_stream(options.stream, device);
  std::vector<Tensor> results;
  const std::vector<OutputSpec> specs = infer(def, in, options);
  check_sizes(def.name, specs);
  for (const OutputSpec& spec : specs) {
    results.emplace_back(spec.dtype, spec.shape, device, stream);
    for (const auto& extra : def.extra_outputs)
      if (extra.info.name == spec.name) (options.*extra.field).emplace(results.back().view());
  }
  const TensorView out = results[0];
  repeat_or_run(def, std::span(&out, 1), in, options);
  return results;
}

// Allocates every output that infer() names, on the device of the first input, and runs.
template <class Problem, class Options>
std::vector<Tensor> allocate(const Definition<Problem, Options>& def,
                             std::span<const TensorView> in, const Options& options) {
  return at_line(options.where, [&] { return allocate_and_run(def, in, options); });
}

template <class Problem, class Options>
std::vector<Tensor> allocate(const Definition<Problem, Options>& def,
                             std::initializer_list<TensorView> inputs, const Options& options) {
  return allocate(def, std::span(inputs.begin(), inputs.size()), options);
}

// The registry's face of a Definition.
template <class Problem, class Options>
class OperatorOf final : public Operator {
 public:
  explicit OperatorOf(const Definition<Problem, Options>& def)
      : Operator(describe(def)), def_(def) {}

  std::vector<OutputSpec> infer(const Arguments& a) const override {
    return at_line(a.where, [&] {
      auto specs = op::infer(def_, a.inputs, options(a));
      check_sizes(def_.name, specs);
      return specs;
    });
  }
  void run(std::span<const TensorView> outputs, const Arguments& a) const override {
    at_line(a.where, [&] { repeat_or_run(def_, outputs.first(1), a.inputs, options(a, outputs)); });
  }
  Explanation explain(std::span<const TensorView> outputs, const Arguments& a,
                      const DeviceInfo& device) const override {
    return at_line(a.where, [&] { return explained(outputs, a, device); });
  }

 private:
  Explanation explained(std::span<const TensorView> outputs, const Arguments& a,
                        const DeviceInfo& device) const {
    const Options o = options(a, outputs);
    const Call<Options> call{outputs.first(1), a.inputs, o};
    const auto [named_outputs, named_inputs] = tensors_of(def_, call);
    check_places(def_.name, named_outputs, named_inputs, def_.any_address);
    const Problem problem = def_.check(call);
    Explanation e{def_.name, place_of(device), {}, consider(def_, problem, device), {}, 0};
    if (!a.variant.empty())
      add_forced(e.variants, description_.variants, def_.name, a.variant, device.device);
    for (const Considered& c : e.variants) {
      const bool wanted =
          a.variant.empty() || a.variant == c.variant.name || a.variant == c.variant.alias;
      const bool suits = c.reason.empty() || !a.variant.empty();
      if (c.accepted && wanted && suits && e.variant.empty()) e.variant = c.variant.name;
    }
    e.cost = def_.cost ? def_.cost(problem) : moving_cost(named_outputs, named_inputs);
    if (def_.sizes) e.sizes = def_.sizes(problem);
    add_estimates(e, device, a.inputs[0].dtype());
    return e;
  }
  static Description describe(const Definition<Problem, Options>& def) {
    Description d{def.name,    def.group,  def.summary, def.details,
                  def.aliases, def.inputs, {},          {{def.out_name, def.out_doc}},
                  def.dtypes,  {}};
    for (const auto& o : def.options) d.options.push_back(o.parameter);
    for (const auto& o : def.extra_outputs) d.outputs.push_back(o.info);
    d.variants = all_variants(def);
    return d;
  }
  Options options(const Arguments& a) const {
    const size_t most = def_.inputs.size();
    const size_t least = most - size_t(std::ranges::count(def_.inputs, true, &Parameter::optional));
    if (a.inputs.size() < least || a.inputs.size() > most || a.options.size() > def_.options.size())
      fail(ErrorKind::type, def_.name, ": takes ", least == most ? "" : join(least, " to "), most,
           " arrays and at most ", def_.options.size(), " options, got ", a.inputs.size(), " and ",
           a.options.size());
    Options o;
    for (size_t i = 0; i < a.options.size(); ++i) def_.options[i].set(def_.name, o, a.options[i]);
    o.variant = a.variant;
    o.stream = a.stream;
    o.where = a.where;
    return o;
  }
  Options options(const Arguments& a, std::span<const TensorView> outputs) const {
    Options o = options(a);
    if (outputs.size() != 1) {
      const auto specs = op::infer(def_, a.inputs, o);
      if (outputs.empty() || outputs.size() > specs.size())
        fail(ErrorKind::type, def_.name, ": takes 1 to ", specs.size(), " outputs, got ",
             outputs.size());
      for (size_t i = 1; i < outputs.size(); ++i)
        for (const auto& extra : def_.extra_outputs)
          if (extra.info.name == specs[i].name) (o.*extra.field).emplace(outputs[i]);
    }
    return o;
  }

  const Definition<Problem, Options>& def_;
};

// The operators of a folder, which live as long as the process. Called once.
template <class... Definitions>
OperatorList registered(const Definitions&... definitions) {
  return {new OperatorOf(definitions)...};
}

}  // namespace tensorcraft::op
