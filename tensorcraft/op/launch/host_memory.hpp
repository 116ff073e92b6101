// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

#include <algorithm>
#include <bitset>
#include <span>
#include <string_view>
#include <vector>

// Operators that take tensors of the host beside those of another device (Definition's
// reaches_host).
namespace tensorcraft::op {

// The device of the first tensor that does not lie on the host; the host if all do.
Device reaching_device(std::span<const TensorView> tensors);
// Does it lie in memory of the host that kernels of `device` cannot reach, as it is not
// page-locked?
bool is_pageable(const TensorView& t, Device device);
// The error for it, kind value.
[[noreturn]] void refuse_pageable(const TensorView& t, Device device, std::string_view op,
                                  std::string_view name);
// A tensor of the host as kernels of `device` see it, with its own address if they do not; any
// other as it is.
TensorView reached(const TensorView& t, Device device);

// Some inputs of a call, by their place.
using InputSet = std::bitset<16>;

// Does a call have tensors of the host beside others, which its operator can reach?
template <class Definition, class Options>
bool mixes_host(const Definition& def, std::span<const TensorView> outputs,
                std::span<const TensorView> inputs, const Options& options) {
  if (!def.reaches_host) return false;
  const Device device = reaching_device(inputs);
  const auto elsewhere = [&](const TensorView& t) { return t.device() != device; };
  return std::ranges::any_of(inputs, elsewhere) || elsewhere(outputs[0]) ||
         std::ranges::any_of(def.extra_outputs, [&](const auto& extra) {
           const auto& view = options.*extra.field;
           return view && elsewhere(*view);
         });
}

// The tensors of such a call on one device. Memory that kernels cannot reach is refused, unless the
// operator takes it.
template <class Options>
class ReachedTensors {
 public:
  template <class Definition>
  ReachedTensors(const Definition& def, std::span<const TensorView> outputs,
                 std::span<const TensorView> inputs, const Options& options)
      : options_(options) {
    const Device device = reaching_device(inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (is_pageable(inputs[i], device)) {
        if (!def.run_pageable) refuse_pageable(inputs[i], device, def.name, def.inputs[i].name);
        pageable_.set(i);
      }
      inputs_.push_back(reached(inputs[i], device));
    }
    outputs_.push_back(reached_output(outputs[0], device, def.name, def.out_name));
    for (const auto& extra : def.extra_outputs)
      if (auto& view = options_.*extra.field)
        view = reached_output(*view, device, def.name, extra.info.name);
  }
  std::span<const TensorView> outputs() const { return outputs_; }
  std::span<const TensorView> inputs() const { return inputs_; }
  const Options& options() const { return options_; }
  // The inputs that kernels cannot reach.
  const InputSet& pageable() const { return pageable_; }

 private:
  // Where kernels cannot reach it, it has to be an input that is written in place.
  TensorView reached_output(const TensorView& t, Device device, std::string_view op,
                            std::string_view name) const {
    const auto is_it = [&](const TensorView& input) { return input.data() == t.data(); };
    if (is_pageable(t, device) && std::ranges::none_of(inputs_, is_it))
      refuse_pageable(t, device, op, name);
    return reached(t, device);
  }

  Options options_;
  std::vector<TensorView> inputs_, outputs_;
  InputSet pageable_;
};

}  // namespace tensorcraft::op
