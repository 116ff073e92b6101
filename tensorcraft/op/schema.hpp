// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/launch/host_memory.hpp"
#include "tensorcraft/op/immortal.hpp"
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
  Immortal<Parameter> inputs;  // a call may leave out optional ones at the end
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

// Checks what every operator needs: devices equal, memory there and elements aligned, outputs
// writable and not overlapping themselves, an input (unless equal to it where `in_place`) or
// another output.
void check_tensors(std::string_view op, const NamedTensors& outputs, const NamedTensors& inputs,
                   bool in_place, bool any_address);
// The part of it that needs no real memory: devices equal, elements aligned.
void check_places(std::string_view op, const NamedTensors& outputs, const NamedTensors& inputs,
                  bool any_address);
// "a=float32[64,32] out=float32[64,32]", with the strides of what is not contiguous.
std::string tensors_text(const NamedTensors& outputs, const NamedTensors& inputs);
// The work of moving every tensor once.
Cost moving_cost(const NamedTensors& outputs, const NamedTensors& inputs);
// Outputs have a size that can be counted.
void check_sizes(std::string_view op, std::span<const OutputSpec> specs);
// The stream a call runs on.
StreamRef resolve_stream(const std::optional<StreamRef>& given, Device device);
// Compiles if needed and enqueues; on the emulator runs to the end.
void launch_plan(const Plan& plan, Device device, StreamRef stream, std::string_view op);
// The error if no variant takes a call.
[[noreturn]] void no_variant(std::string_view op, std::string_view forced,
                             std::span<const Considered> considered);
// The fields of a Config: "threads = 256, vector = 4".
std::string config_text(const Step& step);
double floor_us(const Cost& cost, const DeviceInfo& device, DType dtype);
// Returns what explain says of inputs that kernels cannot reach; empty if there are none.
std::string staged_text(std::span<const Parameter> inputs, const InputSet& pageable);
// "cuda:0", or "sm_90a" if the device is known by its architecture alone.
std::string place_of(const DeviceInfo& device);

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
