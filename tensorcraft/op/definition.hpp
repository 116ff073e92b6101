// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/choice/choose.hpp"
#include "tensorcraft/op/choice/nearest_settings.hpp"
#include "tensorcraft/op/cost.hpp"
#include "tensorcraft/op/launch/host_memory.hpp"
#include "tensorcraft/op/launch/launch.hpp"
#include "tensorcraft/op/launch/plan_cache.hpp"
#include "tensorcraft/op/launch/trace.hpp"
#include "tensorcraft/op/tuning/tuned_call.hpp"
#include "tensorcraft/runtime/dispatch/dispatch.hpp"

#include <algorithm>
#include <optional>
#include <utility>

// How an operator is written: one Definition object in <op>.cpp, from which come the typed C++
// functions (run, allocate) and the registry entry (OperatorOf). The worked example is
// ops/l2_normalize.
namespace tensorcraft::op {

// With the tensors in the order of remember(). A warm call needs no names, so it makes none.
template <class Problem, class Options>
CallKey key_of(const Definition<Problem, Options>& def, const Call<Options>& call) {
  const Options& options = call.options;
  CallKey key;
  key.add(uint64_t(reinterpret_cast<uintptr_t>(&def)));
  key.add(tuned_generation());
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
  const Chosen again = first_of_ladder(def.ladder, problem, device_info(out.device()), variant);
  if (!again.variant.empty()) remembered->find_values(key, again.plan);
  PlanCache::of_this_thread().remember(key, std::move(remembered));
}

// Runs a checked problem by code of the host.
template <class Problem, class Options>
void run_on_host(const Definition<Problem, Options>& def, const Call<Options>& call,
                 const Problem& problem) {
  const HostVariant<Problem>& chosen = choose_on_host(def, problem, call.options.variant);
  dispatch::refuse_cancelled(def.name);
  if (call.out().size() == 0) return;
  const Device device = call.out().device();
  const StreamRef stream = resolve_stream(call.options.stream, device);
  const Trace::Scope scope(Trace::active(), def.name, chosen.name, device, stream);
  cuda::warn_of_fallback();
  chosen.run(problem);
}

// Runs a call with inputs that kernels cannot reach.
template <class Problem, class Options>
void run_pageable(const Definition<Problem, Options>& def, const Call<Options>& call,
                  const InputSet& pageable) {
  const CallTensors tensors = tensors_of(def, call);
  check_tensors(def.name, tensors.outputs, tensors.inputs, def.in_place, def.any_address);
  const Problem problem = def.check(call);
  const Device device = call.out().device();
  const StreamRef stream = resolve_stream(call.options.stream, device);
  const auto launch = [&](const Problem& part) {
    const Chosen chosen = choose_rung(def, part, device_info(device), call.options.variant);
    const Trace::Scope scope(Trace::active(), def.name, chosen.variant, device, stream);
    launch_plan(chosen.plan, device, stream, def.name);
  };
  def.run_pageable({def.name, problem, pageable, device, stream, launch});
}

// A call has five steps, reach(), repeat() and these three. By what was measured to be fastest if
// that is known. Nothing is launched for an empty output. The call is remembered under `key` unless
// that is null.
template <class Problem, class Options>
void check_choose_launch(const Definition<Problem, Options>& def, const Call<Options>& given,
                         const CallKey* key) {
  const CallTensors tensors = tensors_of(def, given);
  check_tensors(def.name, tensors.outputs, tensors.inputs, def.in_place, def.any_address);
  const Device device = given.out().device();
  std::optional<TunedOptions<Options>> tuned;
  if (may_have_tuned(device)) tuned = tuned_options(def, given, device_info(device));
  const Call<Options> call{given.outputs, given.inputs, tuned ? tuned->options : given.options};
  const Problem problem = def.check(call);
  if (!runs_kernels(device.type)) return run_on_host(def, call, problem);

  const DeviceInfo& info = device_info(device);
  const Chosen chosen = first_of_ladder(def.ladder, problem, info, call.options.variant);
  if (chosen.variant.empty()) {
    check_settings(def, call, problem, info);
    fail_to_choose(def, problem, info, call.options.variant);
  }

  if (call.out().size() == 0) return;
  const StreamRef stream = resolve_stream(call.options.stream, device);
  const Trace::Scope scope(Trace::active(), def.name, chosen.variant, device, stream);
  launch_plan(chosen.plan, device, stream, def.name);
  if (key) remember(def, call, *key, chosen.variant, chosen.plan);
}

// Repeats a call that is remembered, else runs it. All tensors lie on one device.
template <class Problem, class Options>
void repeat(const Definition<Problem, Options>& def, const Call<Options>& call) {
  const Device device = call.out().device();
  if (!device.is_cuda()) return check_choose_launch(def, call, nullptr);
  const CallKey key = key_of(def, call);
  PlanCache& cache = PlanCache::of_this_thread();
  const auto [plan, variant] = cache.repeat(key);
  if (!plan) return check_choose_launch(def, call, cache.wants(key) ? &key : nullptr);
  const StreamRef stream = resolve_stream(call.options.stream, device);
  const Trace::Scope scope(Trace::active(), def.name, variant, device, stream);
  launch_plan(*plan, device, stream, def.name);
}

// Runs a call of tensors wherever the operator reaches them.
template <class Problem, class Options>
void reach(const Definition<Problem, Options>& def, std::span<const TensorView> outputs,
           std::span<const TensorView> inputs, const Options& options) {
  if (!mixes_host(def, outputs, inputs, options))
    return repeat(def, Call<Options>{outputs, inputs, options});
  const ReachedTensors<Options> reached(def, outputs, inputs, options);
  const Call<Options> call{reached.outputs(), reached.inputs(), reached.options()};
  if (reached.pageable().any()) return run_pageable(def, call, reached.pageable());
  repeat(def, call);
}

template <class Problem, class Options>
void run(const Definition<Problem, Options>& def, std::span<const TensorView> outputs,
         std::span<const TensorView> inputs, const Options& options) {
  at_line(options.where, [&] { reach(def, outputs, inputs, options); });
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
  reach(def, std::span(&out, 1), in, options);
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
    at_line(a.where, [&] { reach(def_, outputs.first(1), a.inputs, options(a, outputs)); });
  }
  Explanation explain(std::span<const TensorView> outputs, const Arguments& a,
                      const DeviceInfo& device) const override {
    return at_line(a.where, [&] { return explained(outputs, a, device); });
  }

 private:
  Explanation explained(std::span<const TensorView> outputs, const Arguments& a,
                        const DeviceInfo& device) const {
    const Options o = options(a, outputs);
    if (!mixes_host(def_, outputs, a.inputs, o))
      return explained(Call<Options>{outputs.first(1), a.inputs, o}, a, device);
    const ReachedTensors<Options> reached(def_, outputs, a.inputs, o);
    Explanation e =
        explained(Call<Options>{reached.outputs(), reached.inputs(), reached.options()}, a, device);
    e.staged = staged_text(def_.inputs, reached.pageable());
    return e;
  }
  Explanation explained(const Call<Options>& call, const Arguments& a,
                        const DeviceInfo& device) const {
    const auto [named_outputs, named_inputs] = tensors_of(def_, call);
    check_places(def_.name, named_outputs, named_inputs, def_.any_address);
    const Problem problem = def_.check(call);
    const auto tuned = tuned_options(def_, call, device);
    Explanation e{def_.name, place_of(device), {}, {}, {}, 0};
    e.variants = consider(def_, problem, device, tuned ? planned(call, device, *tuned) : Chosen());
    if (tuned) {
      e.variant = tuned->options.variant;
      e.tuned = tuned->entry;
    }
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
    e.call = text_of(def_, call);
    add_estimates(e, device, a.inputs[0].dtype());
    return e;
  }
  Chosen planned(const Call<Options>& call, const DeviceInfo& device,
                 const TunedOptions<Options>& tuned) const {
    if (!runs_kernels(device.device.type)) return {};
    const Problem problem = def_.check({call.outputs, call.inputs, tuned.options});
    return first_of_ladder(def_.ladder, problem, device, tuned.options.variant);
  }
  static Description describe(const Definition<Problem, Options>& def) {
    Description d{def.name,    def.group,  def.summary, def.details,
                  def.aliases, def.inputs, {},          {{def.out_name, def.out_doc}},
                  def.dtypes,  {}};
    for (const auto& o : def.options) d.options.push_back(o.parameter);
    for (const auto& o : def.extra_outputs) d.outputs.push_back(o.info);
    d.variants = all_variants(def);
    d.reaches_host = def.reaches_host;
    return d;
  }
  Options options(const Arguments& a) const {
    const size_t most = def_.inputs.size();
    const auto may_end = [](const Parameter& p) { return p.optional && p.named; };
    const size_t least = most - size_t(std::ranges::count_if(def_.inputs, may_end));
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

// New operators of a folder, which live as long as the process.
template <class... Definitions>
OperatorList registered(const Definitions&... definitions) {
  return {new OperatorOf(definitions)...};
}

}  // namespace tensorcraft::op
