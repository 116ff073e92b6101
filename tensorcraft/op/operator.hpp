// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/op/explanation.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::op {

// dtype and shape of an output, before it exists. The first is called "out", unless the operator
// has a better name for it.
struct OutputSpec {
  // Describes one output.
  std::string_view name;
  DType dtype;
  Dims shape;
  // The input that becomes it in place if a call brings no memory for it; -1: none.
  int in_place_of = -1;
};

// Everything the front ends, the documentation and the tests know of an operator.
struct Description {
  // Parameters in the order of a call, variants best first.
  std::string_view name;
  std::string_view group;    // "normalise", "matrix", ...: a section of the operator index
  std::string_view summary;  // one line
  std::string_view details;  // shapes, dtypes, formula and its source, special values
  std::vector<std::string_view> aliases;
  std::vector<Parameter> inputs, options;
  std::vector<OutputInfo> outputs;
  std::vector<DType> dtypes;  // of the first input
  std::vector<VariantInfo> variants;
  bool reaches_host = false;  // tensors of the host may stand beside those of a GPU
};

// The dtypes that an argument takes: its own; if it has none, those of the operator for its first
// input, and nothing for others.
std::span<const DType> argument_dtypes(const Description& op, std::string_view argument);

// A call whose types are known only at run time. `inputs` and `options` follow the description;
// outputs beyond the first are optional and follow `outputs`. variant empty: choose.
struct Arguments {
  // Borrowed: it must outlive the call.
  std::span<const TensorView> inputs;
  std::span<const Value> options;
  std::string_view variant = {};
  std::optional<StreamRef> stream = std::nullopt;
  std::source_location where = std::source_location::current();  // the line that errors name
};

// An address to ask explain() with, for tensors that have no memory: aligned as an allocation is,
// and far from that of every other number and from real memory. A null address would mean that an
// operand is left out.
inline void* imagined_address(size_t number) {
  return reinterpret_cast<void*>((uintptr_t(number) + 1) << 41);  // NOLINT
}
// The outputs of a call as it would allocate them: contiguous at the first imagined addresses, or
// the input that becomes one in place. Inputs without memory are imagined from kImaginedInputs on.
inline constexpr size_t kImaginedInputs = 16;
inline std::vector<TensorView> imagined_outputs(std::span<const OutputSpec> specs,
                                                std::span<const TensorView> inputs, Device device) {
  std::vector<TensorView> outputs;
  for (const OutputSpec& spec : specs) {
    if (spec.in_place_of >= 0)
      outputs.push_back(inputs[size_t(spec.in_place_of)]);
    else
      outputs.emplace_back(imagined_address(outputs.size()), spec.dtype, spec.shape, device);
  }
  return outputs;
}

// An operator of the registry. Objects are static.
class Operator {
 public:
  virtual ~Operator() = default;
  // Lives as long as the process.
  const Description& description() const { return description_; }
  // Number of arrays the call returns and their specs; throws what the call would throw.
  virtual std::vector<OutputSpec> infer(const Arguments& arguments) const = 0;
  // Computes into `outputs`, one for each spec of infer() in its order.
  virtual void run(std::span<const TensorView> outputs, const Arguments& arguments) const = 0;
  // Returns the answers of all variants of the device, best first. Reads no tensor memory. Strides
  // and alignment of outputs count: imagined_outputs() are those that a call would allocate.
  virtual Explanation explain(std::span<const TensorView> outputs, const Arguments& arguments,
                              const DeviceInfo& device) const = 0;

 protected:
  // For the class that implements one.
  explicit Operator(Description description) : description_(std::move(description)) {}
  Description description_;
};

// Stands in the place of an input that a call leaves out though others follow it.
inline TensorView absent_input(Device device) { return {nullptr, DType::uint8, {0}, device}; }
inline bool is_absent(const TensorView& input) {
  return input.rank() == 1 && input.size() == 0 && input.dtype() == DType::uint8;
}

// The registry, in the order of the index.
using OperatorList = std::vector<const Operator*>;

}  // namespace tensorcraft::op
