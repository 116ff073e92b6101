// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/operator.hpp"

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::diagnose {

// A call as text, with nothing computed and no memory: what `explain` and `warmup` take.
struct RequestText {
  std::string op;  // the name of the operator
  // One of each array argument, in the order of the operator's description: "4096x512", "scalar",
  // with a dtype of its own "8:int64", with rows that are 520 elements apart "4096x512/520".
  std::vector<std::string> shapes;
  std::string dtype = "float32";  // of every array that names none
  // "NAME=VALUE"; of an array option the value is a shape, of named arguments "g,u,b=0.5".
  std::vector<std::string> options;
  // Describes the first outputs, if they lie elsewhere than in an allocation of their own:
  // "4096x512/520".
  std::vector<std::string> outputs;
  std::string variant;  // empty: choose
};
// From one line: OP SHAPE... [--dtype D] [--option NAME=VALUE]... [--out SHAPE]... [--variant V].
// Kind value if it is not of this form.
RequestText parse_request(std::string_view line);

// "g, u, b=0.5": two arrays and a number, whose names are parts of `text`. Kind value for a number
// that is none, in an error that begins with `name`.
std::vector<op::NamedValue> parse_named_values(std::string_view name, std::string_view text);

// Such a call on one device, ready to be explained.
class Request {
 public:
  // `op` is the operator that text.op names. Kind value for text that is no shape, dtype, option or
  // value, and what the operator's own checks throw.
  Request(const op::Operator& op, const RequestText& text, const DeviceInfo& device);

  // The operator that is asked about.
  const op::Operator& op() const { return op_; }
  // These return the parts of the call, for a caller who has memory for it.
  const std::vector<TensorView>& inputs() const { return inputs_; }
  const std::vector<TensorView>& outputs() const { return outputs_; }
  const std::vector<op::Value>& options() const { return options_; }
  // Returns what the call would run and why. Kind value for an unknown variant.
  op::Explanation explain() const;

 private:
  void set_option(const std::string& text, DType dtype);
  void* next_address();

  const op::Operator& op_;
  const DeviceInfo device_;
  const std::string variant_;
  std::vector<TensorView> inputs_, outputs_;
  std::vector<op::Value> options_;
  size_t num_tensors_ = 0;
  std::deque<std::string> texts_;  // what string_views of options_ point at
  std::vector<op::NamedValue> named_values_;
};

}  // namespace tensorcraft::diagnose
