// SPDX-License-Identifier: Apache-2.0
#include "tensor.hpp"

#include "arguments.hpp"
#include "arrays.hpp"
#include "gil.hpp"
#include "graph.hpp"
#include "transfer.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"

#include <nanobind/stl/string.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::python {
namespace {

using namespace nb::literals;

PyTensor with(const PyTensor& t, const TensorView& view) { return {view, t.memory}; }

// A copy in row-major order: the operator reads any strides on any device.
nb::object copied(nb::handle self) {
  return nb::module_::import_("tensorcraft").attr("copy")(self);
}

nb::object to_device_copy(nb::handle self, nb::handle device, bool non_blocking = false) {
  const PyTensor& t = nb::cast<const PyTensor&>(self);
  const Device target = to_device(device);
  if (t.view.device() == target) return nb::borrow(self);
  const bool on_gpu = target.is_cuda() || t.view.device().is_cuda();
  if (on_gpu) refuse_while_recording(join("a copy from ", t.view.device(), " to ", target));
  if (!t.view.is_contiguous()) return to_device_copy(copied(self), device, non_blocking);
  if (on_gpu && non_blocking) return nb::cast(transferred(t, target));
  const StreamRef stream = current_stream(target.is_cuda() ? target.index : t.view.device().index);
  Tensor result(t.view.dtype(), t.view.shape(), target, stream);
  t.memory->settle(stream, false);
  t.memory->order_before(stream);
  {
    const WithoutGil released;
    copy_bytes(result, t.view, stream);
  }
  t.memory->used_on(stream);
  return nb::cast(own(std::move(result), stream));
}

nb::object numpy_of(nb::handle self) {
  const PyTensor& t = nb::cast<const PyTensor&>(self);
  if (t.view.device() == Device::simt()) return to_numpy(with(t, on_device(t.view, Device::cpu())));
  const nb::object host = to_device_copy(self, nb::str("cpu"));
  return to_numpy(nb::cast<const PyTensor&>(host));
}

// The consumer's stream: a handle, 1 and 2 for the two default streams, -1 for "do not order".
void order_before(const PyTensor& t, nb::handle stream) {
  if (!t.view.device().is_cuda()) {
    if (!stream.is_none())
      fail(ErrorKind::value, "__dlpack__: Tensor must be on CUDA device: a stream was given");
    return;
  }
  const int64_t handle = stream.is_none() ? 1 : to_int64(stream, "stream");
  if (handle == -1) return;
  if (handle == 0)
    fail(ErrorKind::value,
         "__dlpack__: stream 0 names no stream; 1 is the legacy default stream, 2 the per-thread");
  t.memory->order_before(StreamRef(reinterpret_cast<CUstream_st*>(handle), t.view.device().index));
}

// True, False or None, of Python or of NumPy.
std::optional<bool> to_choice(nb::handle object, std::string_view name) {
  if (object.is_none()) return std::nullopt;
  if (!is_bool(object))
    fail(ErrorKind::type, name, " must be True, False or None, got ", class_name(object));
  return PyObject_IsTrue(object.ptr()) == 1;
}

// torch.from_dlpack reads over DLPack's mark of read-only memory: its tensor could be written.
bool is_called_by_torch() {
  PyObject* const globals = PyEval_GetGlobals();  // borrowed, of the Python function that calls
  const nb::handle name = globals ? PyDict_GetItemString(globals, "__name__") : nullptr;
  if (!name.is_valid() || !PyUnicode_Check(name.ptr())) return false;
  const auto text = nb::cast<std::string>(name);
  return text.substr(0, text.find('.')) == "torch";
}

nb::object dlpack_of(nb::handle self, nb::handle stream, nb::handle max_version,
                     nb::handle dl_device, nb::handle copy) {
  const PyTensor& t = nb::cast<const PyTensor&>(self);
  const std::optional<bool> copies = to_choice(copy, "__dlpack__: copy");
  const auto here = to_dlpack(t.view.device());
  if (!dl_device.is_none()) {
    const auto [type, index] = to_pair(dl_device, "__dlpack__: dl_device");
    if (type != here.device_type || index != here.device_id) {
      if (type != dlpack::kDLCPU || copies == false)
        fail(ErrorKind::buffer, "__dlpack__: the tensor is on ", t.view.device(),
             "; only a copy to the CPU is made on the way");
      return dlpack_of(to_device_copy(self, nb::str("cpu")), nb::none(), max_version, nb::none(),
                       nb::none());
    }
  }
  if (copies == true) return dlpack_of(copied(self), stream, max_version, nb::none(), nb::none());
  const bool versioned =
      !max_version.is_none() && to_pair(max_version, "__dlpack__: max_version").first >= 1;
  order_before(t, stream);
  if (t.view.read_only() && !versioned)
    fail(ErrorKind::buffer,
         "__dlpack__: the tensor is read-only, which only DLPack 1.0 or newer can say");
  if (t.view.read_only() && is_called_by_torch())
    fail(ErrorKind::buffer,
         "__dlpack__: the tensor is read-only, and torch has no such tensors; give it a copy, "
         "torch.from_dlpack(x.copy())");
  return export_capsule(t, versioned);
}

PyTensor empty(nb::handle shape, nb::handle dtype, nb::handle device) {
  if (PyLong_Check(dtype.ptr()))
    fail(ErrorKind::type, "shape must be a tuple: write the sizes as one, such as (",
         to_int64(dtype, "dtype"), ",)");
  const Dims dims = to_dims(shape);
  const DType type = dtype.is_none() ? DType::float32 : to_dtype(dtype);
  const Device on = device.is_none() ? default_device() : to_device(device);
  const StreamRef home = current_stream(on.index);
  return own(Tensor(type, dims, on, home), home);
}

// "float32": the spelling of every error.
nb::str name_of(DType dtype) {
  const std::string_view name = to_string(dtype);
  return nb::str(name.data(), name.size());
}

// "f", "i", "u" or "b", as NumPy's.
const char* kind_of(DType dtype) {
  if (is_floating(dtype)) return "f";
  return dtype == DType::bool_ ? "b" : dtype == DType::uint8 ? "u" : "i";
}

void register_dtype(nb::module_& m) {
  auto dtypes = nb::enum_<DType>(m, "DType",
                                 "The type of a tensor's elements; equal to every spelling of it.");
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto name = to_string(DType(i));
    dtypes.value(name == "bool" ? "bool_" : name.data(), DType(i));
  }
  // Its hash is that of its name, so a dict with names as keys is asked by dtypes too.
  dtypes
      .def(
          "__eq__", [](DType d, nb::handle other) { return find_dtype(other) == d; },
          "other"_a.none())
      .def(
          "__ne__", [](DType d, nb::handle other) { return find_dtype(other) != d; },
          "other"_a.none())
      .def("__hash__", [](DType d) { return nb::hash(name_of(d)); })
      .def("__str__", &name_of)
      .def_prop_ro("name", &name_of, "\"float32\" and its like.")
      .def_prop_ro(
          "itemsize", [](DType d) { return dtype_bytes(d); }, "Bytes of one element.")
      .def_prop_ro("kind", &kind_of, "\"f\", \"i\", \"u\" or \"b\", as NumPy's.");
}

void register_attributes(nb::class_<PyTensor>& c) {
  c.def_prop_ro(
       "shape", [](const PyTensor& t) { return to_tuple(t.view.shape()); },
       "Size of each dimension.")
      .def_prop_ro(
          "strides", [](const PyTensor& t) { return to_tuple(t.view.strides()); },
          "Elements from one index to the next, for each dimension.")
      .def_prop_ro(
          "dtype", [](const PyTensor& t) { return t.view.dtype(); }, "Type of the elements.")
      .def_prop_ro(
          "device", [](const PyTensor& t) { return to_string(t.view.device()); },
          "\"cpu\", \"cuda:N\" or \"simt\".")
      .def_prop_ro(
          "ndim", [](const PyTensor& t) { return t.view.rank(); }, "Number of dimensions.")
      .def_prop_ro(
          "size", [](const PyTensor& t) { return t.view.size(); }, "Number of elements.")
      .def_prop_ro(
          "nbytes", [](const PyTensor& t) { return t.view.nbytes(); }, "Bytes of all elements.")
      .def_prop_ro(
          "data_ptr",
          [](const PyTensor& t) {
            t.memory->settle(current_stream(t.view.device().index), true);
            return reinterpret_cast<uintptr_t>(t.view.data());
          },
          "Address of the first element.")
      .def_prop_ro(
          "is_contiguous", [](const PyTensor& t) { return t.view.is_contiguous(); },
          "Row-major without gaps?")
      .def_prop_ro(
          "read_only", [](const PyTensor& t) { return t.view.read_only(); },
          "Can nothing write through it?");
}

void register_views(nb::class_<PyTensor>& c) {
  c.def(
       "_reshape",
       [](const PyTensor& t, nb::handle s) { return with(t, t.view.reshape(to_dims(s))); },
       "shape"_a.none())
      .def(
          "_permute",
          [](const PyTensor& t, nb::handle axes) {
            std::vector<int> wanted;
            for (const int64_t axis : to_dims(axes, "axes")) wanted.push_back(to_axis(axis));
            return with(t, t.view.permute(wanted));
          },
          "axes"_a.none())
      .def("_select",
           [](const PyTensor& t, int axis, int64_t i) { return with(t, t.view.select(axis, i)); })
      .def("_overlaps",
           [](const PyTensor& t, const PyTensor& other) { return may_overlap(t.view, other.view); })
      .def("_slice", [](const PyTensor& t, int axis, int64_t start, int64_t stop,
                        int64_t step) { return with(t, t.view.slice(axis, start, stop, step)); })
      .def("_flip", [](const PyTensor& t, int axis) { return with(t, t.view.flip(axis)); })
      .def(
          "_expand_dims",
          [](const PyTensor& t, nb::handle axis) {
            return with(t, t.view.expand_dims(to_axis(to_int64(axis, "axis"))));
          },
          "axis"_a.none())
      .def(
          "_squeeze",
          [](const PyTensor& t, nb::handle axis) {
            return with(t, t.view.squeeze(to_axis(to_int64(axis, "axis"))));
          },
          "axis"_a.none())
      .def("_with_dtype", [](const PyTensor& t,
                             nb::handle dtype) { return with(t, t.view.bits_as(to_dtype(dtype))); })
      .def(
          "_broadcast_to",
          [](const PyTensor& t, nb::handle s) { return with(t, t.view.broadcast_to(to_dims(s))); },
          "shape"_a.none());
}

}  // namespace

void register_tensor(nb::module_& m) {
  register_dtype(m);
  nb::class_<PyTensor> c(m, "Tensor", nb::is_final(), nb::is_weak_referenceable(),
                         "An array on one device. Made by tc.asarray, tc.empty and the operators.");
  register_attributes(c);
  register_views(c);
  c.def(
       "_to",
       [](nb::handle self, nb::handle device, nb::handle non_blocking) {
         if (!is_bool(non_blocking))
           fail(ErrorKind::type, "to: non_blocking must be True or False, got ",
                class_name(non_blocking));
         return to_device_copy(self, device, PyObject_IsTrue(non_blocking.ptr()) == 1);
       },
       "device"_a.none(), "non_blocking"_a.none() = false)
      .def("numpy", &numpy_of,
           "The values as a NumPy array: shares host memory, copies from a GPU and waits.")
      .def("__dlpack__", &dlpack_of, nb::kw_only(), "stream"_a = nb::none(),
           "max_version"_a = nb::none(), "dl_device"_a = nb::none(), "copy"_a = nb::none(),
           "The tensor as a DLPack capsule, without a copy.")
      .def(
          "__dlpack_device__",
          [](const PyTensor& t) {
            const auto d = to_dlpack(t.view.device());
            return nb::make_tuple(int(d.device_type), d.device_id);
          },
          "Type and index of the device, by DLPack's numbers.")
      .def("__init__", [](PyTensor*, const nb::args&, const nb::kwargs&) {
        fail(ErrorKind::type,
             "a tc.Tensor is not made by its class; use tc.asarray, tc.zeros or tc.empty");
      });
  for (const char* name : {"numpy", "__dlpack_device__"})
    refuse_others(c, name, "takes no arguments");
  refuse_others(c, "__dlpack__", "takes stream, max_version, dl_device and copy, by name");
  c.attr("__dlpack_c_exchange_api__") = nb::capsule(own_exchange_api(), "dlpack_exchange_api");
  m.def(
      "from_any", [](nb::handle obj) { return to_tensor(obj); }, "obj"_a.none(),
      "What tc.asarray starts from.");
  m.def(
      "from_float64",
      [](nb::handle array, nb::handle dtype) { return from_float64(array, to_dtype(dtype)); },
      "array"_a.none(), "dtype"_a.none(), "What tc.asarray makes of float64.");
  m.def("empty", &empty, "shape"_a.none(), "dtype"_a.none(), "device"_a.none(),
        "What tc.empty calls.");
  m.def("to_dtype", &to_dtype, "obj"_a.none(), "A dtype from any spelling of it.");
}

}  // namespace tensorcraft::python
