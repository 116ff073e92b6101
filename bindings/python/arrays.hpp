// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "exchange.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <nanobind/nanobind.h>

#include <optional>

namespace tensorcraft::python {

namespace nb = nanobind;

// tc.Tensor: a view with a share in whatever owns the memory.
struct PyTensor {
  TensorView view;
  std::shared_ptr<void> owner;
};
PyTensor own(Tensor tensor);

// Whose array an argument is, so that the result can be of the same kind.
enum class Framework { numpy, tensorcraft, exchange, dlpack, scalar };

// One array argument, borrowed for the length of a call.
struct ArrayArgument {
  TensorView view;
  std::shared_ptr<void> owner;
  Framework framework = Framework::numpy;
  const ExchangeApi* api = nullptr;  // of framework exchange
  PyObject* like = nullptr;          // the object, for its type
  bool is_weak() const { return framework == Framework::scalar; }
};

// tc.Tensor, NumPy array, anything with the exchange API or __dlpack__, nested list, or number.
// Fails with kind type naming `op` and `name` otherwise, and for float64 arrays, with the fix.
ArrayArgument to_array(nb::handle object, std::string_view op, std::string_view name);
// A view as a NumPy array that shares the memory; kind type for dtypes NumPy lacks.
nb::object to_numpy(const TensorView& host_view, std::shared_ptr<void> owner);
// The memory for a result of the same kind as `like`, and the object to return.
struct NewArray {
  TensorView view;
  nb::object object;
  std::shared_ptr<void> owner;
};
NewArray new_array(const ArrayArgument& like, DType dtype, const Dims& shape, Device device, StreamRef stream);

// Python text or object to the library's types; kind value or type where it is none.
DType to_dtype(nb::handle object);
Device to_device(nb::handle object);
// tc.Stream, an integer handle, or an object with __cuda_stream__.
StreamRef to_stream(nb::handle object, int device);

}  // namespace tensorcraft::python
