// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/operator.hpp"

#include <nlohmann/json.hpp>

#include <deque>
#include <string>
#include <vector>

// The cases files tests/ops/cases/<op>.json: what the conformance test and the compile gate run,
// and the valid call that other tests begin with. Format: tests/ops/cases/README.md.
namespace tensorcraft::test {

// One tensor argument as the file describes it, all names resolved.
struct TensorCase {
  DType dtype = DType::float32;
  Dims shape, strides;  // strides empty: row-major
  int64_t offset = 0;   // elements into an aligned allocation
  nlohmann::json fill;  // null: normal for floats, 0..9 for integers
};

// One case of one operator with one dtype: everything but memory.
struct Case {
  const op::Operator* op = nullptr;
  std::string name;
  DType dtype = DType::float32;
  std::vector<TensorCase> inputs;
  std::vector<nlohmann::json> options;             // null: not given; resolved scalars
  std::vector<std::optional<TensorCase>> tensors;  // of tensor options, beside `options`
  std::vector<std::optional<TensorCase>> outputs;  // layouts given for outputs, by position
  std::vector<std::string> tags;
  double reduction = 1;         // length of the longest sum of one output element
  bool rounds_inside = false;   // intermediate values are rounded to the dtype
  bool rounds_to_tf32 = false;  // operands are, where a variant rounds them
  double code_steps = 0;        // codes of 8 bits may be so many away
  bool has_tag(std::string_view tag) const;
};

// The cases of a file's content with the sweeps and dtypes multiplied out.
std::vector<Case> cases_of(const nlohmann::json& file);
// The entries of one list of every file in tests/ops/cases, each with its operators.
std::vector<nlohmann::json> entries_of_all_files(const std::string& list);
// The cases of every file.
std::vector<Case> all_cases();
// The valid call of every operator, of a dtype and with one size for all its names.
std::vector<Case> valid_calls(DType dtype, int64_t size);

// The arguments of a case at addresses without memory.
struct ImaginedCall {
  ImaginedCall(const Case& c, Device device);
  op::Arguments arguments() const { return {inputs, options, {}, std::nullopt}; }
  void make_inputs_read_only();
  std::vector<TensorView> inputs, outputs;
  std::vector<op::Value> options;
  std::vector<op::OutputSpec> specs;  // of the outputs
};

// Returns the outputs of a case; takes no memory.
std::vector<op::OutputSpec> infer_case(const Case& c);
// Explains what it would run on a device that need not be there; takes no memory.
op::Explanation explain_case(const Case& c, const DeviceInfo& device);

// A tensor in a guarded allocation: the bytes around it are checked after a call.
class GuardedTensor {
 public:
  GuardedTensor(const TensorCase& layout, Device device);
  const TensorView& view() const { return view_; }
  void fill(const nlohmann::json& how, uint64_t seed);  // inputs
  void set_values(const std::vector<float>& values);
  void poison();  // outputs: every byte 0xff (NaN)
  // The values, row-major, as float32; exact for the 16- and 8-bit floats.
  std::vector<float> values() const;
  // Bytes outside the view are as they were, inside too if `inside`.
  bool untouched(bool inside) const;

 private:
  void upload();
  std::vector<std::byte> download() const;
  TensorCase layout_;
  Device device_;
  std::vector<std::byte> expected_;  // the whole allocation as last uploaded
  Tensor memory_;
  TensorView view_;
};

// A case with memory on a device, ready to be called.
class CaseRun {
 public:
  // upcast: inputs and outputs of the case's dtype become float32, with the values of the dtype.
  CaseRun(const Case& c, Device device, bool upcast = false);
  op::Arguments arguments(std::string_view variant) const;
  std::vector<TensorView> outputs() const;
  void make_inputs_read_only();
  void poison_outputs();
  std::vector<std::vector<float>> results() const;
  // Empty when all guards hold and no input changed; else what was touched.
  std::string damage() const;
  // Every output is as poison_outputs() left it.
  bool outputs_untouched() const;

 private:
  const Case& case_;
  std::deque<GuardedTensor> inputs_, tensors_, outputs_;
  std::vector<TensorView> input_views_;
  std::vector<op::Value> options_;
};

}  // namespace tensorcraft::test
