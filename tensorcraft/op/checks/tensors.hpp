// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/launch/plan_cache.hpp"
#include "tensorcraft/op/operator.hpp"

#include <span>
#include <string>
#include <string_view>

// Checks of the tensors of every call.
namespace tensorcraft::op {

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
// Outputs have a size that can be counted.
void check_sizes(std::string_view op, std::span<const OutputSpec> specs);
// "a=float32[64,32] out=float32[64,32]", with the strides of what is not contiguous.
std::string tensors_text(const NamedTensors& outputs, const NamedTensors& inputs);

}  // namespace tensorcraft::op
