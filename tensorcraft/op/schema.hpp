// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/checks/tensors.hpp"
#include "tensorcraft/op/immortal.hpp"
#include "tensorcraft/op/launch/host_memory.hpp"
#include "tensorcraft/op/operator.hpp"
#include "tensorcraft/op/option.hpp"
#include "tensorcraft/op/launch/plan_cache.hpp"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Defines an operator: the Definition, and what every operator checks the same way.
namespace tensorcraft::op {

// A typed call: `outputs` and `inputs` in the order of the definition.
template <class Options>
struct Call {
  std::span<const TensorView> outputs, inputs;
  const Options& options;
  const TensorView& out() const { return outputs[0]; }
  const TensorView& in(size_t i = 0) const { return inputs[i]; }
};

// A checked call with inputs in memory of the host that kernels cannot reach.
template <class Problem>
struct PageableCall {
  std::string_view op;
  const Problem& problem;  // such inputs have their addresses on the host
  InputSet pageable;       // which they are
  Device device;
  StreamRef stream;
  // Enqueues the kernels of a problem without such memory.
  std::function<void(const Problem&)> launch;
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
  Immortal<Parameter>
      inputs;  // a call may leave out optional ones: absent_input(), named at the end
  Immortal<Option<Options>> options = {};
  std::string_view out_name = "out";  // of the first output, as infer() names it
  std::string_view out_doc;
  Immortal<ExtraOutput<Options>> extra_outputs = {};
  Immortal<DType> dtypes;
  bool in_place = false;     // out may be exactly one of the inputs
  bool any_address = false;  // elements need not lie at a multiple of their size
  // Tensors may lie on the host beside others that do not: kernels get the address that such memory
  // has for them.
  bool reaches_host = false;
  // Runs such a call if kernels cannot reach some of the inputs. Null: it is refused.
  void (*run_pageable)(const PageableCall<Problem>&) = nullptr;
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

}  // namespace tensorcraft::op
