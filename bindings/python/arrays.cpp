// SPDX-License-Identifier: Apache-2.0
#include "arrays.hpp"

#include "tensorcraft/core/error.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <string>

namespace tensorcraft::python {
namespace {

// The dtype of a buffer-protocol format character; nullopt for float64 and everything else.
std::optional<DType> buffer_dtype(const char* format, Py_ssize_t bytes) {
  if (!format || !*format) return DType::uint8;
  const char c = *format == '@' || *format == '=' || *format == '<' ? format[1] : format[0];
  switch (c) {
    case 'f': return DType::float32;
    case 'e': return DType::float16;
    case '?': return DType::bool_;
    case 'B': return DType::uint8;
    case 'b': return DType::int8;
    case 'h': return DType::int16;
    case 'i':
    case 'l':
    case 'q': return bytes == 8 ? DType::int64 : bytes == 4 ? std::optional(DType::int32) : std::nullopt;
    default: return std::nullopt;
  }
}

struct BufferOwner {
  Py_buffer buffer;
  ~BufferOwner() {
    const nb::gil_scoped_acquire gil;
    PyBuffer_Release(&buffer);
  }
};

[[noreturn]] void refuse_dtype(nb::handle object, std::string_view op, std::string_view name) {
  const auto dtype = nb::cast<std::string>(nb::str(object.attr("dtype")));
  const std::string fix = dtype == "float64" ? "convert it: x.astype(\"float32\"), or tc.asarray(x, dtype=tc.float32)"
                                             : "the dtypes are float32, float16, bfloat16, float8, int8 to int64, uint8 and bool";
  fail(ErrorKind::type, op, ": ", name, ": dtype ", dtype, " is not supported; ", fix);
}

ArrayArgument from_numpy(nb::handle object, std::string_view op, std::string_view name) {
  auto owner = std::make_shared<BufferOwner>();
  if (PyObject_GetBuffer(object.ptr(), &owner->buffer, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();
    owner->buffer = {};
    refuse_dtype(object, op, name);
  }
  const Py_buffer& b = owner->buffer;
  const auto dtype = buffer_dtype(b.format, b.itemsize);
  if (!dtype) refuse_dtype(object, op, name);
  Dims shape, strides;
  for (int i = 0; i < b.ndim; ++i) {
    shape.push_back(b.shape[i]);
    if (b.strides[i] % b.itemsize)
      fail(ErrorKind::value, op, ": ", name, ": strides are not whole elements; copy it first");
    strides.push_back(b.strides[i] / b.itemsize);
  }
  const auto access = b.readonly ? Access::read_only : Access::read_write;
  return {{b.buf, *dtype, shape, strides, Device::cpu(), access}, std::move(owner), Framework::numpy, nullptr, object.ptr()};
}

ArrayArgument from_exchange(nb::handle object, const ExchangeApi* api) {
  if (api->borrow) {
    dlpack::DLTensor borrowed{};
    if (api->borrow(object.ptr(), &borrowed) != 0) throw nb::python_error();
    return {TensorView::from_dlpack(borrowed), nullptr, Framework::exchange, api, object.ptr()};
  }
  dlpack::DLManagedTensorVersioned* m = nullptr;
  if (api->from_object(object.ptr(), &m) != 0) throw nb::python_error();
  std::shared_ptr<void> owner(m, [](dlpack::DLManagedTensorVersioned* t) { if (t->deleter) t->deleter(t); });
  return {TensorView::from_dlpack(m->dl_tensor), std::move(owner), Framework::exchange, api, object.ptr()};
}

// A list or a number through NumPy: floats become float32, since no user asked for float64.
ArrayArgument from_python(nb::handle object, std::string_view op, std::string_view name) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  nb::object array = numpy.attr("asarray")(object);
  if (nb::cast<std::string>(nb::str(array.attr("dtype"))) == "float64") array = array.attr("astype")("float32");
  ArrayArgument a = from_numpy(array, op, name);
  const bool number = PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr());
  a.framework = number ? Framework::scalar : Framework::numpy;
  a.like = nullptr;
  return a;
}

bool is_numpy(nb::handle object) {
  static PyObject* ndarray = nb::object(nb::module_::import_("numpy").attr("ndarray")).release().ptr();
  return PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject*>(ndarray));
}

void check_numpy_has(DType dtype) {
  if (dtype == DType::bfloat16 || dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2)
    fail(ErrorKind::type, "NumPy has no ", dtype, "; keep it in a tc.Tensor (tc.asarray), or convert to float32 first");
}

NewArray from_framework(const ExchangeApi* api, DType dtype, const Dims& shape, Device device) {
  dlpack::DLTensor prototype{nullptr, to_dlpack(device), shape.rank(), to_dlpack(dtype),
                             const_cast<int64_t*>(shape.data()), nullptr, 0};
  struct Message { std::string text; } error;
  dlpack::DLManagedTensorVersioned* m = nullptr;
  const auto set = [](void* e, const char* kind, const char* text) {
    static_cast<Message*>(e)->text = std::string(kind) + ": " + text;
  };
  if (api->allocate(&prototype, &m, &error, set) != 0)
    fail(ErrorKind::out_of_memory, "the framework could not allocate ", shape, " of ", dtype, " on ", device, ": ", error.text);
  const TensorView view = TensorView::from_dlpack(m->dl_tensor);
  void* object = nullptr;
  if (api->to_object(m, &object) != 0) throw nb::python_error();
  return {view, nb::steal(static_cast<PyObject*>(object)), nullptr};
}

}  // namespace

PyTensor own(Tensor tensor) {
  auto shared = std::make_shared<Tensor>(std::move(tensor));
  const TensorView view = shared->view();
  return {view, std::move(shared)};
}

ArrayArgument to_array(nb::handle object, std::string_view op, std::string_view name) {
  if (PyTensor* t = nullptr; nb::try_cast(object, t))
    return {t->view, t->owner, Framework::tensorcraft, nullptr, object.ptr()};
  if (is_numpy(object)) return from_numpy(object, op, name);
  if (const ExchangeApi* api = exchange_api(Py_TYPE(object.ptr()))) return from_exchange(object, api);
  if (nb::hasattr(object, "__dlpack__")) {
    Imported i = import_dlpack(object.ptr(), nullptr);
    return {i.view, std::move(i.owner), Framework::dlpack, nullptr, object.ptr()};
  }
  if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()) || PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr()))
    return from_python(object, op, name);
  fail(ErrorKind::type, op, ": ", name, " must be an array (NumPy, torch, anything with __dlpack__, a tc.Tensor or a list), got ",
       nb::cast<std::string>(nb::str(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))).attr("__name__"))));
}

nb::object to_numpy(const TensorView& view, std::shared_ptr<void> owner) {
  check_numpy_has(view.dtype());
  auto* keep = new std::shared_ptr<void>(std::move(owner));
  const nb::capsule guard(keep, [](void* p) noexcept { delete static_cast<std::shared_ptr<void>*>(p); });
  size_t shape[kMaxRank];
  std::copy(view.shape().begin(), view.shape().end(), shape);
  const auto dl = to_dlpack(view.dtype());
  const nb::ndarray<nb::numpy> array(view.data(), size_t(view.rank()), shape, guard, view.strides().data(),
                                     {dl.code, dl.bits, dl.lanes});
  return nb::cast(array, nb::rv_policy::reference);
}

NewArray new_array(const ArrayArgument& like, DType dtype, const Dims& shape, Device device, StreamRef stream) {
  if (like.framework == Framework::exchange) return from_framework(like.api, dtype, shape, device);
  PyTensor t = own(Tensor(dtype, shape, device, stream));
  const TensorView view = t.view;
  auto owner = t.owner;
  if (like.framework == Framework::tensorcraft) return {view, nb::cast(std::move(t)), owner};
  if (like.framework == Framework::dlpack) {
    nb::object type = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(like.like)));
    nb::object tensor = nb::cast(std::move(t));
    return {view, nb::module_::import_("tensorcraft._frameworks").attr("from_dlpack")(type, tensor), owner};
  }
  return {view, nb::object(), owner};  // NumPy: made from the host copy after the call
}

DType to_dtype(nb::handle object) {
  DType direct;
  if (nb::try_cast(object, direct)) return direct;
  std::string name;
  if (nb::isinstance<nb::str>(object))
    name = nb::cast<std::string>(object);
  else if (nb::hasattr(object, "__name__"))
    name = nb::cast<std::string>(object.attr("__name__"));
  else
    name = nb::cast<std::string>(nb::str(object));
  if (const auto dot = name.rfind('.'); dot != std::string::npos) name = name.substr(dot + 1);
  if (const auto d = parse_dtype(name)) return *d;
  fail(ErrorKind::type, "dtype ", name, " is not supported; there are float32, float16, bfloat16, float8_e4m3fn, "
       "float8_e5m2, int8, int16, int32, int64, uint8 and bool");
}

Device to_device(nb::handle object) { return parse_device(nb::cast<std::string>(nb::str(object))); }

StreamRef to_stream(nb::handle object, int device) {
  if (Stream* s = nullptr; nb::try_cast(object, s)) return s->ref();
  if (PyLong_Check(object.ptr())) return StreamRef(reinterpret_cast<CUstream_st*>(nb::cast<uintptr_t>(object)), device);
  if (nb::hasattr(object, "__cuda_stream__")) {
    const auto pair = nb::cast<nb::tuple>(object.attr("__cuda_stream__")());
    return StreamRef(reinterpret_cast<CUstream_st*>(nb::cast<uintptr_t>(pair[1])), device);
  }
  fail(ErrorKind::type, "stream must be a tc.Stream, an integer handle or an object with __cuda_stream__");
}

}  // namespace tensorcraft::python
