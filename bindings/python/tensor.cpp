// SPDX-License-Identifier: Apache-2.0
#include "tensor.hpp"

#include "arguments.hpp"
#include "arrays.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/runtime/safetensors/file.hpp"

#include <nanobind/stl/string.h>

#include <cstddef>
#include <string>
#include <vector>

namespace tensorcraft::python {
namespace {

using namespace nb::literals;

PyTensor with(const PyTensor& t, const TensorView& view) { return {view, t.memory}; }

// The same elements with an axis from its end to its beginning.
PyTensor flipped(const PyTensor& t, int axis) {
  const TensorView& v = t.view;
  if (v.size() == 0 || v.shape(axis) == 1) return t;
  Dims strides = v.strides();
  auto* last = v.data_as<std::byte>() +
               (v.shape(axis) - 1) * strides[axis] * int64_t(dtype_bytes(v.dtype()));
  strides[axis] = -strides[axis];
  const auto access = v.read_only() ? Access::read_only : Access::read_write;
  return with(t, {last, v.dtype(), v.shape(), strides, v.device(), access});
}

// A copy in row-major order: the operator reads any strides on any device.
nb::object copied(nb::handle self) {
  return nb::module_::import_("tensorcraft").attr("copy")(self);
}

nb::object to_device_copy(nb::handle self, nb::handle device) {
  const PyTensor& t = nb::cast<const PyTensor&>(self);
  const Device target = to_device(device);
  if (t.view.device() == target) return nb::borrow(self);
  if (!t.view.is_contiguous()) return to_device_copy(copied(self), device);
  const StreamRef stream = current_stream(target.is_cuda() ? target.index : t.view.device().index);
  Tensor result(t.view.dtype(), t.view.shape(), target, stream);
  t.memory->order_before(stream);
  {
    const nb::gil_scoped_release release;
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

nb::object dlpack_of(nb::handle self, nb::handle stream, nb::handle max_version,
                     nb::handle dl_device, nb::handle copy) {
  const PyTensor& t = nb::cast<const PyTensor&>(self);
  const auto here = to_dlpack(t.view.device());
  if (!dl_device.is_none()) {
    const int64_t type = to_int64(dl_device[0], "dl_device");
    if (type != here.device_type || to_int64(dl_device[1], "dl_device") != here.device_id) {
      if (type != dlpack::kDLCPU || copy.ptr() == Py_False)
        fail(ErrorKind::buffer, "__dlpack__: the tensor is on ", t.view.device(),
             "; only a copy to the CPU is made on the way");
      return dlpack_of(to_device_copy(self, nb::str("cpu")), nb::none(), max_version, nb::none(),
                       nb::none());
    }
  }
  if (copy.ptr() == Py_True)
    return dlpack_of(copied(self), stream, max_version, nb::none(), nb::none());
  order_before(t, stream);
  const bool versioned = !max_version.is_none() && to_int64(max_version[0], "max_version") >= 1;
  if (t.view.read_only() && !versioned)
    fail(ErrorKind::buffer,
         "__dlpack__: the tensor is read-only, which only DLPack 1.0 or newer can say");
  return export_capsule(t, versioned);
}

PyTensor empty(nb::handle shape, nb::handle dtype, nb::handle device) {
  const Device on = to_device(device);
  const StreamRef home = current_stream(on.index);
  return own(Tensor(to_dtype(dtype), to_dims(shape), on, home), home);
}

nb::dict load_safetensors(nb::handle path, nb::handle device) {
  const std::string file(to_text(path, "path"));
  const Device on = device.is_none() ? default_device() : to_device(device);
  std::vector<std::shared_ptr<const TensorResource>> loaded;
  {
    const nb::gil_scoped_release release;
    loaded = SafeTensors(file).load_all(on);
  }
  nb::dict tensors;
  for (const auto& resource : loaded) {
    auto memory = std::make_shared<Memory>(resource, on, current_stream(on.index));
    const std::string& name = resource->name();
    tensors[nb::str(name.data(), name.size())] = PyTensor{resource->view(), std::move(memory)};
  }
  return tensors;
}

void register_dtype(nb::module_& m) {
  auto dtypes = nb::enum_<DType>(m, "DType", "The type of a tensor's elements.");
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto name = to_string(DType(i));
    dtypes.value(name == "bool" ? "bool_" : name.data(), DType(i));
  }
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
          "data_ptr", [](const PyTensor& t) { return reinterpret_cast<uintptr_t>(t.view.data()); },
          "Address of the first element.")
      .def_prop_ro(
          "is_contiguous", [](const PyTensor& t) { return t.view.is_contiguous(); },
          "Row-major without gaps?")
      .def_prop_ro(
          "read_only", [](const PyTensor& t) { return t.view.read_only(); },
          "Can nothing write through it?");
}

void register_views(nb::class_<PyTensor>& c) {
  c.def("_reshape",
        [](const PyTensor& t, nb::handle s) { return with(t, t.view.reshape(to_dims(s))); })
      .def("_permute",
           [](const PyTensor& t, nb::handle axes) {
             std::vector<int> wanted;
             for (const int64_t axis : to_dims(axes, "axes")) wanted.push_back(to_axis(axis));
             return with(t, t.view.permute(wanted));
           })
      .def("_select",
           [](const PyTensor& t, int axis, int64_t i) { return with(t, t.view.select(axis, i)); })
      .def("_overlaps",
           [](const PyTensor& t, const PyTensor& other) { return may_overlap(t.view, other.view); })
      .def("_slice", [](const PyTensor& t, int axis, int64_t start, int64_t stop,
                        int64_t step) { return with(t, t.view.slice(axis, start, stop, step)); })
      .def("_flip", &flipped)
      .def("_expand_dims",
           [](const PyTensor& t, nb::handle axis) {
             return with(t, t.view.expand_dims(to_axis(to_int64(axis, "axis"))));
           })
      .def("_squeeze",
           [](const PyTensor& t, nb::handle axis) {
             return with(t, t.view.squeeze(to_axis(to_int64(axis, "axis"))));
           })
      .def("_broadcast_to", [](const PyTensor& t, nb::handle s) {
        return with(t, t.view.broadcast_to(to_dims(s)));
      });
}

}  // namespace

void register_tensor(nb::module_& m) {
  register_dtype(m);
  nb::class_<PyTensor> c(m, "Tensor", nb::is_weak_referenceable(),
                         "An array on one device. Made by tc.asarray, tc.empty and the operators.");
  register_attributes(c);
  register_views(c);
  c.def("_to", &to_device_copy, "device"_a)
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
          "Type and index of the device, by DLPack's numbers.");
  c.attr("__dlpack_c_exchange_api__") = nb::capsule(own_exchange_api(), "dlpack_exchange_api");
  m.def(
      "from_any", [](nb::handle obj) { return to_tensor(obj); }, "obj"_a,
      "What tc.asarray starts from.");
  m.def("empty", &empty, "shape"_a, "dtype"_a, "device"_a, "What tc.empty calls.");
  m.def("to_dtype", &to_dtype, "obj"_a, "A dtype from any spelling of it.");
  m.def("load_safetensors", &load_safetensors, "path"_a, "device"_a.none(),
        "What tc.load_safetensors calls.");
}

}  // namespace tensorcraft::python
