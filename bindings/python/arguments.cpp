// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include "stream.hpp"
#include "tensorcraft/core/error.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <limits>

namespace tensorcraft::python {
namespace {

// "torch.float32" and "numpy.float32" name the same type.
std::string_view last_word(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

}  // namespace

bool is_list(nb::handle object) {
  return PyTuple_Check(object.ptr()) || PyList_Check(object.ptr());
}

std::string class_name(nb::handle object) {
  return nb::cast<std::string>(object.type().attr("__name__"));
}

nb::object as_text(nb::handle object) {
  nb::object text = nb::steal(PyObject_Str(object.ptr()));
  if (!text.is_valid()) throw nb::python_error();
  return text;
}

nb::object as_index(nb::handle object) {
  if (!PyIndex_Check(object.ptr())) return {};
  nb::object number = nb::steal(PyNumber_Index(object.ptr()));
  if (number.is_valid()) return number;
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
  PyErr_Clear();
  return {};
}

int64_t to_int64(nb::handle object, std::string_view name) {
  const nb::object number = as_index(object);
  if (!number.is_valid())
    fail(ErrorKind::type, name, " must be an integer, got ", class_name(object));
  const int64_t value = PyLong_AsLongLong(number.ptr());
  if (value == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    fail(ErrorKind::value, name, " does not fit 64 bits");
  }
  return value;
}

double to_double(nb::handle object, std::string_view name) {
  const double value = PyFloat_AsDouble(object.ptr());
  if (value == -1 && PyErr_Occurred()) {
    const bool is_large = PyErr_ExceptionMatches(PyExc_OverflowError);
    if (!is_large && !PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
    PyErr_Clear();
    if (is_large) fail(ErrorKind::value, name, " does not fit float64");
    fail(ErrorKind::type, name, " must be a number, got ", class_name(object));
  }
  return value;
}

std::string_view to_text(nb::handle object, std::string_view name) {
  Py_ssize_t size = 0;
  const char* text =
      PyUnicode_Check(object.ptr()) ? PyUnicode_AsUTF8AndSize(object.ptr(), &size) : nullptr;
  const bool is_text = PyUnicode_Check(object.ptr());
  if (!text) {
    PyErr_Clear();
    if (is_text) fail(ErrorKind::value, name, " must be valid Unicode; it has a lone surrogate");
    fail(ErrorKind::type, name, " must be text, got ", class_name(object));
  }
  const std::string_view whole(text, size_t(size));
  // It would end the text of every error that quotes it.
  if (whole.find('\0') != whole.npos)
    fail(ErrorKind::value, "the ", name, " has a NUL character; leave it out");
  return whole;
}

int to_axis(int64_t axis) {
  constexpr int64_t low = std::numeric_limits<int>::min(), high = std::numeric_limits<int>::max();
  return int(std::clamp(axis, low, high));
}

DType to_dtype(nb::handle object) {
  DType direct;
  if (nb::try_cast(object, direct, false)) return direct;
  const nb::object named = nb::isinstance<nb::str>(object)
                               ? nb::borrow(object)
                               : nb::getattr(object, "__name__", as_text(object));
  const std::string_view name = last_word(to_text(named, "dtype"));
  if (const auto d = parse_dtype(name)) return *d;
  fail(ErrorKind::type, "dtype ", name,
       " is not supported; there are float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, int8, "
       "int16, int32, int64, uint8 and bool");
}

Device to_device(nb::handle object) { return parse_device(to_text(object, "device")); }

StreamRef to_stream(nb::handle object, int device) {
  nb::object handle;
  if (PyStream* s = nullptr; nb::try_cast(object, s, false) && s) {
    const StreamRef ref = s->stream.ref();
    if (ref.device() != device)
      fail(ErrorKind::value, "stream: it belongs to cuda:", ref.device(),
           " and the arrays are on cuda:", device);
    return ref;
  }
  if (PyLong_Check(object.ptr())) {
    handle = nb::borrow(object);
  } else if (nb::hasattr(object, "__cuda_stream__")) {
    handle = object.attr("__cuda_stream__")()[1];
  } else {
    fail(ErrorKind::type,
         "stream must be a tc.Stream, an integer handle or an object with __cuda_stream__, got ",
         class_name(object));
  }
  return StreamRef(reinterpret_cast<CUstream_st*>(to_int64(handle, "stream")), device);
}

Dims to_dims(nb::handle shape, std::string_view name) {
  if (PyIndex_Check(shape.ptr())) return Dims{to_int64(shape, name)};
  if (!PySequence_Check(shape.ptr()) || nb::isinstance<nb::str>(shape))
    fail(ErrorKind::type, name, " must be an integer or a sequence of integers, got ",
         class_name(shape));
  Dims dims;
  for (nb::handle item : shape) dims.push_back(to_int64(item, name));
  return dims;
}

op::Value to_integer_lists(nb::handle object, std::string_view name) {
  size_t lists = 0;
  for (nb::handle item : object) lists += is_list(item);
  if (lists == 0) return to_dims(object, name);
  std::vector<Dims> all;
  for (nb::handle item : object) {
    if (!is_list(item))
      fail(ErrorKind::type, name, " must be an int, a list of ints or a list of such lists, got ",
           nb::cast<std::string>(nb::str(item)), " among them");
    all.push_back(to_dims(item, name));
  }
  return all;
}

nb::tuple to_tuple(const Dims& dims) {
  nb::object tuple = nb::steal(PyTuple_New(dims.rank()));
  for (int i = 0; i < dims.rank(); ++i)
    PyTuple_SET_ITEM(tuple.ptr(), i, PyLong_FromLongLong(dims[i]));
  return nb::cast<nb::tuple>(tuple);
}

}  // namespace tensorcraft::python
