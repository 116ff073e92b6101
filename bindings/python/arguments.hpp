// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/device.hpp"
#include "tensorcraft/core/dims.hpp"
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/stream.hpp"
#include "tensorcraft/op/value.hpp"

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

// Python objects to the library's plain types and back. Each fails with kind type for an object of
// another type and kind value for a value that is not accepted, in words of Python.
namespace tensorcraft::python {

namespace nb = nanobind;

// A Python object that calls need, made at the first use and kept for good. The GIL guards it: the
// guard of a static local would be held while an import gives the GIL up, and a thread that waits
// for the guard with the GIL would wait for ever.
template <class T, class Make>
const T& kept(const T*& place, const Make& make) {
  if (!place) {
    const T* made = new T(make());
    if (!place) place = made;  // else another thread was first
  }
  return *place;
}

// A list or a tuple?
bool is_list(nb::handle object);
std::string class_name(nb::handle object);
// str(object).
nb::object as_text(nb::handle object);
// The Python int that an object with __index__ stands for; null for any other, such as an array of
// floats, which has the method and no answer.
nb::object as_index(nb::handle object);
int64_t to_int64(nb::handle object, std::string_view name);
double to_double(nb::handle object, std::string_view name);
// Text without NUL, valid as long as the object.
std::string_view to_text(nb::handle object, std::string_view name);
// tc.float32, "float32", "f4", numpy.float32, numpy.dtype("float32"), torch.float32, ml_dtypes'
// types, float (float32), int (int64), bool. nullopt for anything else; never fails.
std::optional<DType> find_dtype(nb::handle object);
// Finds it likewise, or fails with kind type.
DType to_dtype(nb::handle object);
// The name of a file: text, bytes or an object with __fspath__.
std::string to_path(nb::handle object);
// Text that may hold the name of a file: bytes that are not UTF-8 become what os.fsdecode() makes
// of them.
nb::object from_text(std::string_view text);
// A pair of integers, as DLPack gives versions and devices.
std::pair<int64_t, int64_t> to_pair(nb::handle object, std::string_view name);
Device to_device(nb::handle object);
// tc.Stream, an integer handle, or an object with __cuda_stream__.
StreamRef to_stream(nb::handle object, int device);
// As an int; what does not fit one stays out of any tensor's range.
int to_axis(int64_t axis);
// An integer or a sequence of integers.
Dims to_dims(nb::handle shape, std::string_view name = "shape");
// The nested list of an array that is no larger than any list an operator takes; anything else as
// it is.
nb::object list_of_small(nb::handle value);
// Is the value of a parameter an array? Where a number may stand too, a scalar of NumPy is one.
bool takes_array(const op::Parameter& parameter, nb::handle value);
// A list or tuple of integers, or of such lists.
op::Value to_integer_lists(nb::handle object, std::string_view name);
// A dict of names with whole numbers or words, as the Value of settings: "a=1, b=word".
nb::str to_settings(nb::handle object, std::string_view name);
nb::tuple to_tuple(const Dims& dims);

// Adds what a call is told whose arguments fit none of a function's forms, which nanobind would
// answer with the names of C++ types. Call it after the last form.
void refuse_others(nb::module_& module, const char* name, const char* takes);
template <class Class>
void refuse_others(Class& c, const char* name, const char* takes) {
  c.def(name, [=](nb::handle, const nb::args&, const nb::kwargs&) -> nb::object {
    fail(ErrorKind::type, name, ": ", takes);
  });
}

}  // namespace tensorcraft::python
