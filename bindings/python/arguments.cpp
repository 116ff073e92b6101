// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include "arrays.hpp"
#include "stream.hpp"
#include "tensorcraft/core/error.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

namespace tensorcraft::python {
namespace {

// NumPy's codes in the machine's byte order, and Python's own types by their names.
std::optional<DType> dtype_of_code(std::string_view code) {
  static constexpr std::pair<std::string_view, DType> kCodes[] = {
      {"f4", DType::float32}, {"f2", DType::float16},   {"i1", DType::int8},
      {"i2", DType::int16},   {"i4", DType::int32},     {"i8", DType::int64},
      {"u1", DType::uint8},   {"b1", DType::bool_},     {"?", DType::bool_},
      {"int", DType::int64},  {"float", DType::float32}};
  if (code.size() > std::string_view("float").size()) return std::nullopt;  // as most names are
  if (code.starts_with('<') || code.starts_with('=') || code.starts_with('|'))
    code.remove_prefix(1);
  for (const auto& [name, dtype] : kCodes)
    if (code == name) return dtype;
  return std::nullopt;
}

std::optional<DType> dtype_of_name(std::string_view name) {
  if (const auto dtype = dtype_of_code(name)) return dtype;  // "i8" has 8 bytes
  for (const std::string_view package : {"torch.", "numpy.", "jax.numpy.", "ml_dtypes."})
    if (name.starts_with(package)) name.remove_prefix(package.size());
  return parse_dtype(name);
}

// Returns what names a dtype: the text itself, the name of a type, or how a dtype object prints.
nb::object dtype_text(nb::handle object) {
  if (PyUnicode_Check(object.ptr())) return nb::borrow(object);
  nb::object name = nb::getattr(object, "__name__", nb::none());
  return PyUnicode_Check(name.ptr()) ? name : as_text(object);
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
    const nb::python_error error;  // takes Python's over
    if (error.matches(PyExc_OverflowError)) fail(ErrorKind::value, name, " does not fit float64");
    // An array of several numbers says so by a ValueError.
    const bool is_array = nb::hasattr(object, "shape");
    if (!error.matches(PyExc_TypeError) && !(is_array && error.matches(PyExc_ValueError)))
      throw error;
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

std::optional<DType> find_dtype(nb::handle object) {
  DType direct;
  if (nb::try_cast(object, direct, false)) return direct;
  try {
    const nb::object text = dtype_text(object);
    return dtype_of_name(to_text(text, "dtype"));
  } catch (const std::exception&) {  // an object that cannot be printed names no dtype
    return std::nullopt;
  }
}

DType to_dtype(nb::handle object) {
  if (object.is_none()) fail(ErrorKind::type, "dtype must not be None; name one, such as float32");
  if (const auto dtype = find_dtype(object)) return *dtype;
  const nb::object text = dtype_text(object);
  const std::string_view given = to_text(text, "dtype");
  const bool is_short = given.size() <= 40 && given.find('\n') == given.npos;
  fail(ErrorKind::type, "dtype ", is_short ? given : class_name(object),
       " is not supported; there are float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, int8, "
       "int16, int32, int64, uint8 and bool");
}

std::string to_path(nb::handle object) {
  PyObject* bytes = nullptr;
  const nb::object path = nb::steal(PyOS_FSPath(object.ptr()));
  if (!path.is_valid()) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
    PyErr_Clear();
    fail(ErrorKind::type, "path must be text, bytes or have __fspath__, got ", class_name(object));
  }
  if (!PyBytes_Check(path.ptr())) {
    bytes = PyUnicode_EncodeFSDefault(path.ptr());
    if (!bytes) {
      PyErr_Clear();
      fail(ErrorKind::value, "path cannot be written in the encoding of file names");
    }
  }
  const nb::object encoded = bytes ? nb::steal(bytes) : path;
  std::string name(PyBytes_AS_STRING(encoded.ptr()), size_t(PyBytes_GET_SIZE(encoded.ptr())));
  if (name.find('\0') != name.npos)
    fail(ErrorKind::value, "the path has a NUL character; leave it out");
  return name;
}

nb::object from_text(std::string_view text) {
  const nb::object decoded =
      nb::steal(PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "surrogateescape"));
  if (!decoded.is_valid()) throw nb::python_error();
  return decoded;
}

std::pair<int64_t, int64_t> to_pair(nb::handle object, std::string_view name) {
  if (!is_list(object) || nb::len(object) != 2)
    fail(ErrorKind::type, name, " must be a pair of integers, got ", class_name(object));
  return {to_int64(object[0], name), to_int64(object[1], name)};
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
  if (const nb::object one = as_index(shape); one.is_valid()) return Dims{to_int64(one, name)};
  const bool is_text = PyUnicode_Check(shape.ptr()) || PyBytes_Check(shape.ptr());
  if (!PySequence_Check(shape.ptr()) || PyType_Check(shape.ptr()) || is_text)
    fail(ErrorKind::type, name, " must be an integer or a sequence of integers, got ",
         class_name(shape));
  Dims dims;
  for (nb::handle item : shape) dims.push_back(to_int64(item, name));
  return dims;
}

nb::object list_of_small(nb::handle value) {
  constexpr int64_t kMost = 64;
  if (is_list(value) || PyType_Check(value.ptr()) || !nb::hasattr(value, "tolist"))
    return nb::borrow(value);
  int64_t size = 1;
  for (const int64_t n : to_dims(nb::getattr(value, "shape", nb::tuple()), "shape"))
    if (__builtin_mul_overflow(size, n, &size)) size = kMost + 1;
  if (size > kMost) return nb::borrow(value);
  nb::object list = value.attr("tolist")();
  return is_list(list) ? list : nb::borrow(value);
}

bool takes_array(const op::Parameter& parameter, nb::handle value) {
  if (!parameter.or_tensor) return parameter.kind == op::ParameterKind::tensor;
  if (parameter.kind == op::ParameterKind::boolean) return !is_bool(value);
  if (PyLong_Check(value.ptr()) || PyFloat_Check(value.ptr())) return false;
  return !PyNumber_Check(value.ptr()) || nb::hasattr(value, "__dlpack__");
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

nb::str to_settings(nb::handle object, std::string_view name) {
  if (!PyDict_Check(object.ptr()))
    fail(ErrorKind::type, name, " must be a dict of names with numbers or text, got ",
         class_name(object));
  std::string text;
  for (const auto& [key, value] : nb::borrow<nb::dict>(object)) {
    text.append(text.empty() ? "" : ", ").append(to_text(key, name)).append("=");
    if (PyUnicode_Check(value.ptr()))
      text.append(to_text(value, name));
    else
      text.append(std::to_string(to_int64(value, name)));
  }
  return nb::str(text.c_str(), text.size());
}

void refuse_others(nb::module_& module, const char* name, const char* takes) {
  module.def(name, [=](const nb::args&, const nb::kwargs&) -> nb::object {
    fail(ErrorKind::type, name, ": ", takes);
  });
}

nb::tuple to_tuple(const Dims& dims) {
  nb::object tuple = nb::steal(PyTuple_New(dims.rank()));
  for (int i = 0; i < dims.rank(); ++i)
    PyTuple_SET_ITEM(tuple.ptr(), i, PyLong_FromLongLong(dims[i]));
  return nb::cast<nb::tuple>(tuple);
}

}  // namespace tensorcraft::python
