// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/checks/tensors.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/checks/check.hpp"

#include <limits>

namespace tensorcraft::op {
namespace {

bool same_view(const TensorView& a, const TensorView& b) {
  return a.data() == b.data() && a.dtype() == b.dtype() && a.shape() == b.shape() &&
         a.strides() == b.strides();
}

void check_output(std::string_view op, const NamedTensors::Entry& out, const NamedTensors& inputs,
                  bool in_place) {
  if (out.view->read_only())
    fail(ErrorKind::buffer, op, ": ", out.name, ": the tensor is read-only; give writable memory");
  if (overlaps_itself(*out.view))
    fail(ErrorKind::value, op, ": ", out.name, ": elements of ", *out.view,
         " share memory; give a tensor with memory for each element");
  for (const auto& input : inputs.entries()) {
    if (in_place && same_view(*out.view, *input.view)) continue;
    check_apart(op, out.name, *out.view, input.name, *input.view,
                in_place ? "they must be the same tensor or apart" : "give it memory of its own");
  }
}

// A copy helps an input; of an output it would take the result.
void check_aligned(std::string_view op, const NamedTensors& tensors, bool are_outputs) {
  for (const auto& t : tensors.entries())
    if (!t.view->is_aligned(dtype_bytes(t.view->dtype())))
      fail(ErrorKind::value, op, ": ", t.name, ": address ", t.view->data(),
           " is not a multiple of the size of ", t.view->dtype(),
           are_outputs ? "; give memory that begins at one" : "; copy the tensor first");
}

void check_memory(std::string_view op, const NamedTensors& tensors) {
  for (const auto& t : tensors.entries())
    if (!t.view->data() && t.view->size() > 0)
      fail(ErrorKind::value, op, ": ", t.name, ": ", *t.view,
           " has no memory: its address is null; give memory for its elements");
}

}  // namespace

void check_places(std::string_view op, const NamedTensors& outputs, const NamedTensors& inputs,
                  bool any_address) {
  const Device device = (inputs.entries().empty() ? outputs : inputs).entries()[0].view->device();
  for (const NamedTensors* tensors : {&inputs, &outputs})
    for (const auto& t : tensors->entries())
      if (t.view->device() != device)
        fail(ErrorKind::value, op, ": ", t.name, ": Device mismatch: expected ", device,
             " but got ", t.view->device(),
             tensors == &outputs ? join("; give a tensor of ", t.view->dtype(), " on ", device)
                                 : join("; move it with .to(\"", device, "\")"));
  if (any_address) return;
  check_aligned(op, inputs, false);
  check_aligned(op, outputs, true);
}

void check_tensors(std::string_view op, const NamedTensors& outputs, const NamedTensors& inputs,
                   bool in_place, bool any_address) {
  check_places(op, outputs, inputs, any_address);
  check_memory(op, inputs);
  check_memory(op, outputs);
  const auto all = outputs.entries();
  for (size_t i = 0; i < all.size(); ++i) {
    check_output(op, all[i], inputs, in_place);
    for (size_t j = 0; j < i; ++j)
      check_apart(op, all[i].name, *all[i].view, all[j].name, *all[j].view);
  }
}

void check_sizes(std::string_view op, std::span<const OutputSpec> specs) {
  for (const OutputSpec& spec : specs) {
    int64_t elements = 0;
    try {
      elements = num_elements(spec.shape);
    } catch (const Error& e) {
      fail(e.kind(), op, ": ", spec.name, ": ", e.what());
    }
    if (elements > std::numeric_limits<int64_t>::max() / int64_t(dtype_bytes(spec.dtype)))
      fail(ErrorKind::out_of_memory, op, ": ", spec.name, ": shape ", spec.shape, " of ",
           spec.dtype, " has more bytes than 64 bits count");
  }
}

}  // namespace tensorcraft::op
