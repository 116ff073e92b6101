// SPDX-License-Identifier: Apache-2.0
#include "tensor.hpp"

#include "tensorcraft/core/error.hpp"

#include <nanobind/stl/string.h>

#include <string>
#include <vector>

namespace tensorcraft::python {
namespace {

using namespace nb::literals;

nb::tuple to_tuple(const Dims& dims) {
  nb::list items;
  for (const int64_t d : dims) items.append(d);
  return nb::tuple(items);
}

Dims to_dims(nb::handle shape) {
  Dims dims;
  if (PyLong_Check(shape.ptr())) return Dims{nb::cast<int64_t>(shape)};
  for (nb::handle item : shape) dims.push_back(nb::cast<int64_t>(nb::int_(item)));
  return dims;
}

PyTensor with(const PyTensor& t, const TensorView& view) { return {view, t.owner}; }

// Strided tensors come back contiguous: only the copy operator reads strides on a GPU.
nb::object contiguous(nb::handle self) { return nb::module_::import_("tensorcraft").attr("copy")(self); }

PyTensor to_device_copy(nb::handle self, const std::string& device) {
  const PyTensor& t = nb::cast<const PyTensor&>(self);
  const Device target = parse_device(device);
  if (t.view.device() == target) return t;
  const nb::object packed = t.view.is_contiguous() ? nb::borrow(self) : contiguous(self);
  const PyTensor& from = nb::cast<const PyTensor&>(packed);
  Tensor result(t.view.dtype(), t.view.shape(), target);
  const Device cuda = target.is_cuda() ? target : t.view.device();
  const nb::gil_scoped_release release;
  copy_bytes(result, from.view, current_stream(cuda.index));
  return own(std::move(result));
}

nb::object numpy_of(nb::handle self) {
  const PyTensor& t = nb::cast<const PyTensor&>(self);
  if (!t.view.device().is_cuda()) return to_numpy(t.view, t.owner);
  const PyTensor host = to_device_copy(self, "cpu");
  return to_numpy(host.view, host.owner);
}

PyTensor from_any(nb::handle object) {
  const ArrayArgument a = to_array(object, "asarray", "obj");
  if (a.owner) return {a.view, a.owner};
  // Borrowed through the exchange API: the object itself keeps the memory.
  auto* keep = new nb::object(nb::borrow(object));
  return {a.view, std::shared_ptr<void>(keep, [](void* p) {
            const nb::gil_scoped_acquire gil;
            delete static_cast<nb::object*>(p);
          })};
}

nb::object dlpack_of(const PyTensor& t, nb::object stream, nb::object max_version, nb::object, nb::object) {
  if (t.view.device().is_cuda() && !stream.is_none()) {
    const auto handle = nb::cast<intptr_t>(stream);
    const StreamRef here = current_stream(t.view.device().index);
    if (handle != -1) {
      Event done(t.view.device().index);
      done.record(here);
      done.wait(StreamRef(reinterpret_cast<CUstream_st*>(handle <= 2 ? nullptr : reinterpret_cast<void*>(handle)), t.view.device().index));
    }
  }
  const bool versioned = !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
  if (t.view.read_only() && !versioned)
    fail(ErrorKind::buffer, "__dlpack__: the tensor is read-only, which only DLPack 1.0 or newer can say");
  return nb::steal(export_dlpack(t.view, t.owner, versioned));
}

void register_dtype(nb::module_& m) {
  auto dtypes = nb::enum_<DType>(m, "DType");
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto name = to_string(DType(i));
    dtypes.value(name == "bool" ? "bool_" : name.data(), DType(i));
  }
}

void register_stream(nb::module_& m) {
  nb::class_<Stream>(m, "Stream", nb::dynamic_attr())
      .def("__init__", [](Stream* s, const std::string& device) { new (s) Stream(parse_device(device).index); }, "device"_a = "cuda")
      .def("synchronize", [](const Stream& s) { const nb::gil_scoped_release release; s.ref().synchronize(); })
      .def("__cuda_stream__", [](const Stream& s) { return nb::make_tuple(0, reinterpret_cast<uintptr_t>(s.ref().handle())); })
      .def_prop_ro("handle", [](const Stream& s) { return reinterpret_cast<uintptr_t>(s.ref().handle()); })
      .def_prop_ro("device", [](const Stream& s) { return to_string(Device::cuda(s.ref().device())); });
  m.def("current_stream", [](int device) { return reinterpret_cast<uintptr_t>(current_stream(device).handle()); }, "device"_a = 0);
  m.def("set_current_stream", [](uintptr_t handle, int device) {
    set_current_stream(StreamRef(reinterpret_cast<CUstream_st*>(handle), device)); }, "handle"_a, "device"_a);
  nb::class_<Event>(m, "Event")
      .def("__init__", [](Event* e, const std::string& device, bool timing) { new (e) Event(parse_device(device).index, timing); },
           "device"_a = "cuda", "timing"_a = false)
      .def("record", [](Event& e, const Stream& s) { e.record(s.ref()); }, "stream"_a)
      .def("wait", [](const Event& e, const Stream& s) { e.wait(s.ref()); }, "stream"_a)
      .def("synchronize", [](const Event& e) { const nb::gil_scoped_release release; e.synchronize(); })
      .def_prop_ro("done", &Event::done)
      .def_static("elapsed_ms", &Event::elapsed_ms, "begin"_a, "end"_a);
}

}  // namespace

void register_tensor(nb::module_& m) {
  register_dtype(m);
  register_stream(m);
  nb::class_<PyTensor>(m, "Tensor", nb::dynamic_attr())
      .def_prop_ro("shape", [](const PyTensor& t) { return to_tuple(t.view.shape()); })
      .def_prop_ro("strides", [](const PyTensor& t) { return to_tuple(t.view.strides()); })
      .def_prop_ro("dtype", [](const PyTensor& t) { return t.view.dtype(); })
      .def_prop_ro("device", [](const PyTensor& t) { return to_string(t.view.device()); })
      .def_prop_ro("ndim", [](const PyTensor& t) { return t.view.rank(); })
      .def_prop_ro("size", [](const PyTensor& t) { return t.view.size(); })
      .def_prop_ro("nbytes", [](const PyTensor& t) { return t.view.nbytes(); })
      .def_prop_ro("data_ptr", [](const PyTensor& t) { return reinterpret_cast<uintptr_t>(t.view.data()); })
      .def_prop_ro("is_contiguous", [](const PyTensor& t) { return t.view.is_contiguous(); })
      .def_prop_ro("read_only", [](const PyTensor& t) { return t.view.read_only(); })
      .def("_reshape", [](const PyTensor& t, nb::handle s) { return with(t, t.view.reshape(to_dims(s))); })
      .def("_permute", [](const PyTensor& t, const nb::tuple& axes) {
        std::vector<int> order;
        for (nb::handle a : axes) order.push_back(nb::cast<int>(a));
        return with(t, t.view.permute(order));
      })
      .def("_select", [](const PyTensor& t, int axis, int64_t i) { return with(t, t.view.select(axis, i)); })
      .def("_slice", [](const PyTensor& t, int axis, int64_t a, int64_t b, int64_t step) { return with(t, t.view.slice(axis, a, b, step)); })
      .def("_expand_dims", [](const PyTensor& t, int axis) { return with(t, t.view.expand_dims(axis)); })
      .def("_squeeze", [](const PyTensor& t, int axis) { return with(t, t.view.squeeze(axis)); })
      .def("_broadcast_to", [](const PyTensor& t, nb::handle s) { return with(t, t.view.broadcast_to(to_dims(s))); })
      .def("_as_read_only", [](const PyTensor& t) { return with(t, t.view.as_read_only()); })
      .def("_to", [](nb::handle self, const std::string& device) { return to_device_copy(self, device); })
      .def("numpy", [](nb::handle self) { return numpy_of(self); })
      .def("__dlpack__", &dlpack_of, nb::kw_only(), "stream"_a = nb::none(), "max_version"_a = nb::none(),
           "dl_device"_a = nb::none(), "copy"_a = nb::none())
      .def("__dlpack_device__", [](const PyTensor& t) {
        const auto d = to_dlpack(t.view.device());
        return nb::make_tuple(int(d.device_type), d.device_id);
      });
  m.def("from_any", &from_any, "obj"_a);
  m.def("empty", [](nb::handle shape, nb::handle dtype, const std::string& device) {
    return own(Tensor(to_dtype(dtype), to_dims(shape), parse_device(device)));
  }, "shape"_a, "dtype"_a, "device"_a);
  m.def("to_dtype", &to_dtype, "obj"_a);
}

}  // namespace tensorcraft::python
