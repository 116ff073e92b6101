// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "exchange.hpp"

#include <span>
#include <string_view>

namespace tensorcraft::python {

// Whose array an argument is, so that the result can be of the same kind.
enum class Framework { numpy, tensorcraft, exchange, dlpack, number };

// One array argument. The caller holds `object` for the length of the call.
struct ArrayArgument {
  TensorView view;
  Framework framework = Framework::numpy;
  nb::handle object;
  std::shared_ptr<Memory> memory = nullptr;  // null: `object` itself keeps the memory
  const ExchangeApi* api = nullptr;          // of framework exchange
  bool keeps_dtype = false;                  // a number that stays what it is beside any array
  std::span<const DType> takes = {};         // a number: the dtypes that its argument names

  bool is_number() const { return framework == Framework::number; }
  bool is_host_array() const { return framework == Framework::numpy || is_number(); }
};

// Before work on the stream reads the array, and before it writes it: Memory::settle().
inline void settle_to_read(const ArrayArgument& array, StreamRef stream) {
  if (array.memory) array.memory->settle(stream, false);
}
inline ArrayArgument settled_to_write(ArrayArgument array, StreamRef stream) {
  if (array.memory) array.memory->settle(stream, true);
  return array;
}

// Views the same host memory as a tensor of the CPU or of the emulator.
inline TensorView on_device(const TensorView& t, Device device) { return t.at(t.data(), device); }

// tc.Tensor, NumPy array or scalar, anything with the exchange API or __dlpack__, nested list, or
// number. `stream` is what the caller gave (None: the current one). Fails with kind type otherwise,
// and for float64 arrays, with the fix. Lists of integers become `whole`: what an argument
// takes of int64, int32 and float32. Lists and scalars of another dtype than the argument `takes`
// become float32 if that is among them. `uint64` says whether an array of that is taken.
ArrayArgument to_array(nb::handle object, std::string_view op, std::string_view name,
                       nb::handle stream, DType whole = DType::int64,
                       std::span<const DType> takes = {}, Uint64 uint64 = Uint64::refused);
// Fails unless what a call on `device` writes into the array's memory reaches the caller: kind type
// for a list or number, kind value for a host array of a call on a GPU.
void check_in_place(const ArrayArgument& array, Device device, std::string_view op,
                    std::string_view name);
// True, False, numpy.True_ or numpy.False_.
bool is_bool(nb::handle object);
// A number of NumPy, and what an array of NumPy without axes is as one; a null object if `object`
// is neither.
nb::object numpy_scalar(nb::handle object);
bool contains(std::span<const DType> dtypes, DType dtype);
// A number as a host tensor of a dtype; kind value if it does not fit.
PyTensor to_scalar(nb::handle number, DType dtype);
// A float64 NumPy array of the machine's byte order as a host tensor: each element is rounded once
// to a float, or becomes an integer or bool as astype has it.
PyTensor from_float64(nb::handle array, DType dtype);
// The memory of an array as a tc.Tensor that keeps it alive.
PyTensor to_tensor(nb::handle object);

// A host tensor as a NumPy array that shares the memory. The dtypes that NumPy lacks are those of
// ml_dtypes, kind type if that is not installed.
nb::object to_numpy(const PyTensor& tensor);
// Has NumPy this dtype, without the package ml_dtypes?
bool is_in_numpy(DType dtype);
// An uninitialised NumPy array, or a tensor of ours; and its memory. NumPy must have the dtype of
// an array of its own.
struct NumpyArray {
  TensorView view;
  nb::object object;
};
NumpyArray empty_on_host(DType dtype, const Dims& shape, bool as_tensor);
// With one element along each axis that repeats it, as a broadcast does; `view` is of the array.
nb::object without_repeats(nb::handle array, const TensorView& view);
// Returns the same values in row-major order.
nb::object contiguous_numpy(nb::handle array);
// An array of the framework of `api`, and its memory.
NumpyArray empty_exchange(const ExchangeApi& api, DType dtype, const Dims& shape, Device device);
// The stream that the framework of an array works on now; TensorCraft's if it is not known.
StreamRef stream_of(const ArrayArgument& array, int device);

}  // namespace tensorcraft::python
