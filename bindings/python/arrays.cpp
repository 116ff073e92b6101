// SPDX-License-Identifier: Apache-2.0
#include "arrays.hpp"

#include "arguments.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/ops/all.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace tensorcraft::python {
namespace {

// Python objects that calls need, looked up once. Leaked on purpose: a destructor would run after
// the interpreter is gone.
struct Numpy {
  nb::object asarray, ascontiguousarray, empty, float32, ndarray, generic, boolean;
  nb::object dtypes[kNumDTypes];  // null if NumPy lacks it

  Numpy() {
    const nb::module_ numpy = nb::module_::import_("numpy");
    asarray = numpy.attr("asarray");
    ascontiguousarray = numpy.attr("ascontiguousarray");
    empty = numpy.attr("empty");
    float32 = numpy.attr("float32");
    ndarray = numpy.attr("ndarray");
    generic = numpy.attr("generic");
    boolean = numpy.attr("bool_");
    for (const DType d : {DType::float32, DType::float16, DType::int8, DType::int16, DType::int32,
                          DType::int64, DType::uint8, DType::bool_})
      dtypes[size_t(d)] = numpy.attr("dtype")(std::string(to_string(d)));
  }
  static bool is(nb::handle object, const nb::object& type) {
    return PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject*>(type.ptr()));
  }
};
const Numpy& numpy() {
  static const Numpy* one = nullptr;
  return kept(one, [] { return Numpy(); });
}

nb::handle numpy_dtype(DType dtype) {
  const nb::object& found = numpy().dtypes[size_t(dtype)];
  if (!found.is_valid())
    fail(ErrorKind::type, "NumPy has no ", dtype,
         "; keep it in a tc.Tensor (tc.asarray), or convert to float32 first; with the package "
         "ml_dtypes NumPy has it");
  return found;
}

// The integers in which the bits of a dtype that NumPy lacks are handed over.
DType bits_of(DType dtype) { return dtype_bytes(dtype) == 2 ? DType::int16 : DType::uint8; }

// The type of the package ml_dtypes; null if it is not installed.
nb::object ml_dtype(DType dtype) {
  try {
    return nb::module_::import_("ml_dtypes").attr(std::string(to_string(dtype)).c_str());
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_ImportError) && !e.matches(PyExc_AttributeError)) throw;
    return {};
  }
}

// The dtype of a buffer-protocol format; nullopt for float64, foreign byte order and all else.
std::optional<DType> buffer_dtype(const char* format, Py_ssize_t bytes, Uint64 uint64) {
  if (!format || !*format) return DType::uint8;
  const bool is_native = *format == '@' || *format == '=' || *format == '<';
  const char* code = is_native ? format + 1 : format;
  if (code[1]) return std::nullopt;
  switch (*code) {
    case 'f':
      return DType::float32;
    case 'e':
      return DType::float16;
    case '?':
      return DType::bool_;
    case 'B':
      return DType::uint8;
    case 'b':
      return DType::int8;
    case 'h':
      return DType::int16;
    case 'i':
    case 'l':
    case 'q':
      return bytes == 8 ? DType::int64 : DType::int32;
    case 'L':
    case 'Q':
      if (bytes == 8 && uint64 == Uint64::as_int64) return DType::int64;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// How to convert to what an argument takes, as far as that is known.
std::string advice(std::string_view op, std::string_view name) {
  std::span<const DType> takes;
  for (const op::Operator* o : operators())
    if (o->description().name == op) takes = op::argument_dtypes(o->description(), name);
  const bool takes_floats = takes.empty() || std::ranges::count(takes, DType::float32) > 0;
  const DType target = takes_floats ? DType::float32 : takes[0];
  const std::string other = takes_floats || takes.size() < 2 ? "" : join(" or ", takes[1]);
  return join("convert it with .astype() to what ", op, " takes, such as ", target, other,
              "; tc.asarray(", name, ", dtype=tc.", target, ") does too");
}

[[noreturn]] void refuse_dtype(nb::handle object, std::string_view op, std::string_view name) {
  const nb::object text = as_text(object.attr("dtype"));
  const std::string_view dtype = to_text(text, "dtype");
  const std::string fix =
      dtype == "float64"
          ? advice(op, name)
          : "the dtypes are float32, float16, int8, int16, int32, int64, uint8 and bool in the "
            "machine's byte order, and bfloat16 and float8 in a tc.Tensor or of ml_dtypes";
  fail(ErrorKind::type, op, ": ", name, ": dtype ", dtype, " is not supported; ", fix);
}

// The array's own memory: it lives as long as the array, so the buffer need not stay locked.
struct Buffer {
  Py_buffer raw{};
  ~Buffer() { PyBuffer_Release(&raw); }
};

ArrayArgument from_numpy(nb::handle object, std::string_view op, std::string_view name,
                         Uint64 uint64 = Uint64::refused);

// An array of ml_dtypes, whose dtype has no buffer format: its bits, under their true dtype.
ArrayArgument from_ml_dtypes(nb::handle object, std::string_view op, std::string_view name) {
  const auto dtype = find_dtype(object.attr("dtype"));
  if (!dtype || is_in_numpy(*dtype)) refuse_dtype(object, op, name);
  const nb::object bits = object.attr("view")(numpy_dtype(bits_of(*dtype)));
  return {from_numpy(bits, op, name).view.bits_as(*dtype), Framework::numpy, object};
}

ArrayArgument from_numpy(nb::handle object, std::string_view op, std::string_view name,
                         Uint64 uint64) {
  // A mask would be dropped in silence.
  if (object.type().ptr() != numpy().ndarray.ptr() && nb::hasattr(object, "filled"))
    fail(ErrorKind::type, op, ": ", name,
         ": a masked array is not supported; give x.filled(value)");
  Buffer buffer;
  Py_buffer& b = buffer.raw;
  if (PyObject_GetBuffer(object.ptr(), &b, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();
    return from_ml_dtypes(object, op, name);
  }
  const auto dtype = buffer_dtype(b.format, b.itemsize, uint64);
  if (!dtype) return from_ml_dtypes(object, op, name);
  Dims shape, strides;
  bool whole = reinterpret_cast<uintptr_t>(b.buf) % size_t(b.itemsize) == 0;
  for (int i = 0; i < b.ndim; ++i) {
    whole = whole && b.strides[i] % b.itemsize == 0;
    shape.push_back(b.shape[i]);
    strides.push_back(b.strides[i] / b.itemsize);
  }
  if (!whole)
    fail(ErrorKind::value, op, ": ", name,
         ": the array's elements are not aligned to their size; copy it first");
  const auto access = b.readonly ? Access::read_only : Access::read_write;
  return {{b.buf, *dtype, shape, strides, Device::cpu(), access}, Framework::numpy, object};
}

// A producer that fails should have set an error.
void check_exchange(int status) {
  if (status == 0) return;
  if (PyErr_Occurred()) throw nb::python_error();
  fail(ErrorKind::buffer, "the array's DLPack exchange API failed and gave no reason");
}

ArrayArgument from_exchange(nb::handle object, const ExchangeApi* api, Uint64 uint64) {
  if (api->borrow) {
    dlpack::DLTensor borrowed{};
    check_exchange(api->borrow(object.ptr(), &borrowed));
    return {to_view(borrowed, Access::read_write, uint64), Framework::exchange, object, nullptr,
            api};
  }
  dlpack::DLManagedTensorVersioned* managed = nullptr;
  check_exchange(api->from_object(object.ptr(), &managed));
  Imported i = import_managed(managed, uint64);
  const Device device = i.view.device();
  auto memory = std::make_shared<Memory>(std::move(i.owner), device, current_stream(device.index));
  return {i.view, Framework::exchange, object, std::move(memory), api};
}

StreamRef stream_of_package(nb::handle object, int device) {
  static const nb::object* function = nullptr;
  const nb::object handle = kept(function, [] {
    return nb::object(nb::module_::import_("tensorcraft._frameworks").attr("current_stream"));
  })(object.type(), device);
  return handle.is_none() ? current_stream(device) : to_stream(handle, device);
}

ArrayArgument from_dlpack(nb::handle object, nb::handle given, Uint64 uint64) {
  const Device device = tensorcraft::from_dlpack(dlpack_device(object));
  StreamRef stream;
  if (device.is_cuda())
    stream =
        given.is_none() ? stream_of_package(object, device.index) : to_stream(given, device.index);
  Imported i = import_dlpack(object, stream, uint64);
  auto memory = std::make_shared<Memory>(std::move(i.owner), device, stream);
  return {i.view, Framework::dlpack, object, std::move(memory)};
}

bool is_number(nb::handle object) {
  return PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr());  // bool is an int
}

// With the dtype it would have alone; to_scalar() makes its memory.
ArrayArgument from_number(nb::handle object) {
  const DType dtype = PyBool_Check(object.ptr())    ? DType::bool_
                      : PyFloat_Check(object.ptr()) ? DType::float32
                                                    : DType::int64;
  return {{nullptr, dtype, {}}, Framework::number, object};
}

// Numbers whose dtype an argument does not take, though it takes float32.
bool becomes_float32(const nb::object& array, std::span<const DType> takes) {
  if (!contains(takes, DType::float32)) return false;
  const auto dtype = find_dtype(array.attr("dtype"));
  if (dtype) return *dtype != DType::bool_ && !contains(takes, *dtype);
  const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  return kind == "f" || kind == "i" || kind == "u";
}

// A list, or a NumPy scalar. Lists of floats become float32, since float64 was not asked for.
ArrayArgument from_sequence(nb::handle object, std::string_view op, std::string_view name,
                            DType whole, std::span<const DType> takes) {
  nb::object array;
  try {
    array = numpy().asarray(object);
    const bool is_list = !Numpy::is(object, numpy().generic);
    const auto code = is_list ? nb::cast<std::string>(array.attr("dtype").attr("char")) : "";
    if (code == "d" || becomes_float32(array, takes))
      array = array.attr("astype")(numpy().float32);
    else if (code == "l" && whole != DType::int64)
      array = numpy().asarray(object, numpy_dtype(whole));
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_ValueError) && !e.matches(PyExc_OverflowError)) throw;
    fail(ErrorKind::value, op, ": ", name, ": ", to_text(as_text(e.value()), "error"));
  }
  ArrayArgument a = from_numpy(array, op, name);
  a.memory = std::make_shared<Memory>(share(array), Device::cpu(), StreamRef());
  a.object = nb::handle();
  return a;
}

[[noreturn]] void refuse_kind(nb::handle object, std::string_view op, std::string_view name) {
  fail(ErrorKind::type, op, ": ", name,
       " must be an array (NumPy, torch, anything with __dlpack__, a tc.Tensor, a list or a "
       "number), got ",
       class_name(object));
}

ArrayArgument convert(nb::handle object, std::string_view op, std::string_view name,
                      nb::handle stream, DType whole, std::span<const DType> takes, Uint64 uint64) {
  if (PyTensor* t = nullptr; nb::try_cast(object, t, false) && t)
    return {t->view, Framework::tensorcraft, object, t->memory};
  if (Numpy::is(object, numpy().ndarray)) return from_numpy(object, op, name, uint64);
  if (is_number(object)) return from_number(object);
  if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()) ||
      Numpy::is(object, numpy().generic))
    return from_sequence(object, op, name, whole, takes);
  if (nb::isinstance<PyTensor>(object))
    fail(ErrorKind::type, op, ": ", name, ": the tc.Tensor was not initialised; use tc.asarray");
  if (const ExchangeApi* api = exchange_api(Py_TYPE(object.ptr())))
    return from_exchange(object, api, uint64);
  if (PyType_Check(object.ptr())) refuse_kind(object, op, name);
  // Objects of our own classes that keep a tensor hold it as long as they live.
  if (nb::hasattr(object, "__tensorcraft_tensor__")) {
    const nb::object kept = object.attr("__tensorcraft_tensor__");
    PyTensor* t = nullptr;
    if (nb::try_cast(kept, t, false) && t)
      return {t->view, Framework::tensorcraft, kept, t->memory};
  }
  if (nb::hasattr(object, "__dlpack__")) return from_dlpack(object, stream, uint64);
  refuse_kind(object, op, name);
}

}  // namespace

ArrayArgument to_array(nb::handle object, std::string_view op, std::string_view name,
                       nb::handle stream, DType whole, std::span<const DType> takes,
                       Uint64 uint64) {
  try {
    return convert(object, op, name, stream, whole, takes, uint64);
  } catch (const Error& e) {
    if (std::string_view(e.what()).starts_with(op)) throw;
    fail(e.kind(), op, ": ", name, ": ", e.what());
  }
}

void check_in_place(const ArrayArgument& array, Device device, std::string_view op,
                    std::string_view name) {
  if (array.is_number() || !array.object.is_valid())
    fail(ErrorKind::type, op, ": ", name, " is written in place, so it must be an array, got ",
         array.is_number() ? "a number" : "a list", "; keep one that tc.asarray(x) or NumPy makes");
  if (array.is_host_array() && device.is_cuda())
    fail(ErrorKind::value, op, ": ", name,
         " is written in place, but it is a host array and the call "
         "is on ",
         device, "; move it with tc.asarray(x, device=\"", device, "\") and keep that");
}

bool is_bool(nb::handle object) {
  return PyBool_Check(object.ptr()) || Numpy::is(object, numpy().boolean);
}

nb::object numpy_scalar(nb::handle object) {
  if (Numpy::is(object, numpy().generic)) return nb::borrow(object);
  if (object.type().ptr() != numpy().ndarray.ptr()) return {};
  return nb::cast<int>(object.attr("ndim")) == 0 ? nb::object(object[nb::tuple()]) : nb::object();
}

bool contains(std::span<const DType> dtypes, DType dtype) {
  return std::ranges::find(dtypes, dtype) != dtypes.end();
}

PyTensor to_scalar(nb::handle number, DType dtype) {
  Tensor result(dtype, {}, Device::cpu());
  if (PyFloat_Check(number.ptr()) || is_floating(dtype)) {
    const double value = to_double(number, "number");
    host::Elements(result.view()).set(0, value);
    return own(std::move(result), {});
  }
  const int64_t value = to_int64(number, "number");
  const int bits = 8 * int(dtype_bytes(dtype));
  const bool is_unsigned = dtype == DType::uint8 || dtype == DType::bool_;
  const int64_t high = dtype == DType::bool_   ? 1
                       : dtype == DType::uint8 ? 255
                                               : std::numeric_limits<int64_t>::max() >> (64 - bits);
  const int64_t low = is_unsigned ? 0 : -high - 1;
  if (value < low || value > high)
    fail(ErrorKind::value, "the number ", value, " does not fit the array's dtype ", dtype,
         "; convert the array to a wider dtype first");
  std::memcpy(result.data(), &value, dtype_bytes(dtype));  // little endian
  return own(std::move(result), {});
}

PyTensor from_float64(nb::handle array, DType dtype) {
  const nb::object kept = contiguous_numpy(array);
  Buffer buffer;
  Py_buffer& b = buffer.raw;
  if (PyObject_GetBuffer(kept.ptr(), &b, PyBUF_RECORDS_RO) != 0) throw nb::python_error();
  if (std::string_view(b.format ? b.format : "") != "d")
    fail(ErrorKind::internal, "from_float64: expected a float64 array, got format ", b.format);
  const nb::object shape = array.attr("shape");  // `kept` has an axis where this has none
  Tensor result(dtype, to_dims(shape), Device::cpu());
  const auto* from = static_cast<const double*>(b.buf);
  const host::Elements to(result.view());
  const int64_t n = result.view().size();
  for (int64_t i = 0; i < n; ++i) to.set(i, from[i]);
  return own(std::move(result), {});
}

PyTensor to_tensor(nb::handle object) {
  ArrayArgument a = to_array(object, "asarray", "obj", nb::none());
  if (a.is_number()) return to_scalar(object, a.view.dtype());
  if (!a.view.data() && a.view.size() > 0)
    fail(ErrorKind::value, "asarray: obj: ", a.view, " has no memory: its address is null");
  if (!a.memory) {
    const Device device = a.view.device();
    const StreamRef home = device.is_cuda() ? stream_of(a, device.index) : StreamRef();
    a.memory = std::make_shared<Memory>(share(nb::borrow(object)), device, home);
  }
  return {a.view, std::move(a.memory)};
}

nb::object to_numpy(const PyTensor& t) {
  if (const DType dtype = t.view.dtype(); !is_in_numpy(dtype)) {
    const nb::object type = ml_dtype(dtype);
    if (!type.is_valid()) numpy_dtype(dtype);  // says what to do
    return to_numpy({t.view.bits_as(bits_of(dtype)), t.memory}).attr("view")(type);
  }
  if (t.memory) {
    t.memory->settle(StreamRef(), true);
    t.memory->wait_for_gpu();
  }
  const nb::object owner = nb::cast(t);
  size_t shape[kMaxRank];
  std::ranges::copy(t.view.shape(), shape);
  const auto dl = to_dlpack(t.view.dtype());
  const nb::dlpack::dtype dtype{dl.code, dl.bits, dl.lanes};
  const auto make = [&]<class... Access>(Access...) {
    const nb::ndarray<nb::numpy, Access...> array(const_cast<void*>(t.view.data()),
                                                  size_t(t.view.rank()), shape, owner,
                                                  t.view.strides().data(), dtype);
    return nb::cast(array, nb::rv_policy::reference);
  };
  return t.view.read_only() ? make(nb::ro()) : make();
}

bool is_in_numpy(DType dtype) { return numpy().dtypes[size_t(dtype)].is_valid(); }

NumpyArray empty_on_host(DType dtype, const Dims& shape, bool as_tensor) {
  if (as_tensor) {
    PyTensor t = own(Tensor(dtype, shape, Device::cpu()), {});
    const TensorView view = t.view;
    return {view, nb::cast(std::move(t))};
  }
  nb::object array;
  try {
    array = numpy().empty(to_tuple(shape), numpy_dtype(dtype));
  } catch (nb::python_error& e) {  // a ValueError if NumPy cannot count the bytes
    if (!e.matches(PyExc_MemoryError) && !e.matches(PyExc_ValueError)) throw;
    fail(ErrorKind::out_of_memory, "out of host memory: the result has shape ", shape,
         " and dtype ", dtype);
  }
  return {from_numpy(array, "numpy", "out").view, array};
}

nb::object without_repeats(nb::handle array, const TensorView& view) {
  nb::list index;
  bool repeats = false;
  for (int i = 0; i < view.rank(); ++i) {
    const bool repeated = view.stride(i) == 0 && view.shape(i) > 1;
    repeats |= repeated;
    index.append(repeated ? nb::slice(0, 1, 1) : nb::slice(nb::none(), nb::none(), nb::none()));
  }
  if (!repeats) return nb::borrow(array);
  return numpy().asarray(array)[nb::tuple(index)];
}

nb::object contiguous_numpy(nb::handle array) {
  try {
    return numpy().ascontiguousarray(array);
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_MemoryError)) throw;
    fail(ErrorKind::out_of_memory,
         "out of host memory: an array is brought into row-major order "
         "before it is copied to a device");
  }
}

NumpyArray empty_exchange(const ExchangeApi& api, DType dtype, const Dims& shape, Device device) {
  dlpack::DLTensor prototype{nullptr,
                             to_dlpack(device),
                             shape.rank(),
                             to_dlpack(dtype),
                             const_cast<int64_t*>(shape.data()),
                             nullptr,
                             0};
  std::string error;
  const auto set_error = [](void* text, const char* kind, const char* message) {
    *static_cast<std::string*>(text) = std::string(kind) + ": " + message;
  };
  dlpack::DLManagedTensorVersioned* managed = nullptr;
  if (api.allocate(&prototype, &managed, &error, set_error) != 0)
    fail(ErrorKind::out_of_memory, "the framework could not allocate ", shape, " of ", dtype,
         " on ", device, ": ", error);
  const TensorView view = TensorView::from_dlpack(managed->dl_tensor);
  void* object = nullptr;
  check_exchange(api.to_object(managed, &object));
  return {view, nb::steal(static_cast<PyObject*>(object))};
}

StreamRef stream_of(const ArrayArgument& array, int device) {
  if (array.framework == Framework::dlpack) return stream_of_package(array.object, device);
  if (!array.api) return current_stream(device);
  void* handle = nullptr;
  check_exchange(array.api->current_stream(dlpack::kDLCUDA, device, &handle));
  return StreamRef(static_cast<CUstream_st*>(handle), device);
}

}  // namespace tensorcraft::python
