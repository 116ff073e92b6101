// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

// Operators that take tensors of the host beside those of another device (Definition's
// reaches_host).
namespace tensorcraft::op {

// The device of the first tensor that does not lie on the host; the host if all do.
Device reaching_device(std::span<const TensorView> tensors);
// A tensor of the host as kernels of `device` see it; any other as it is. Kind value if they
// cannot: memory of the host that is not page-locked.
TensorView reached(const TensorView& t, Device device, std::string_view op, std::string_view name);

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

// The tensors of such a call on one device.
template <class Options>
class ReachedTensors {
 public:
  template <class Definition>
  ReachedTensors(const Definition& def, std::span<const TensorView> outputs,
                 std::span<const TensorView> inputs, const Options& options)
      : options_(options) {
    const Device device = reaching_device(inputs);
    for (size_t i = 0; i < inputs.size(); ++i)
      inputs_.push_back(reached(inputs[i], device, def.name, def.inputs[i].name));
    outputs_.push_back(reached(outputs[0], device, def.name, def.out_name));
    for (const auto& extra : def.extra_outputs)
      if (auto& view = options_.*extra.field)
        view = reached(*view, device, def.name, extra.info.name);
  }
  std::span<const TensorView> outputs() const { return outputs_; }
  std::span<const TensorView> inputs() const { return inputs_; }
  const Options& options() const { return options_; }

 private:
  Options options_;
  std::vector<TensorView> inputs_, outputs_;
};

}  // namespace tensorcraft::op
