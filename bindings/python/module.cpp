// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"
#include "tensor.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/version.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/trace.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tensorcraft::python {
namespace {

// The exception classes are Python code (tensorcraft/errors.py); the kind's name picks one.
void register_errors() {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& e) {
      const nb::object make = nb::module_::import_("tensorcraft.errors").attr("_make");
      const nb::object exception = make(std::string(to_string(e.kind())), std::string(e.what()));
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
    }
  });
}

void register_devices(nb::module_& m) {
  m.def("devices", [] {
    std::vector<std::string> names;
    for (const Device d : devices()) names.push_back(to_string(d));
    return names;
  });
  m.def("default_device", [] { return to_string(default_device()); });
  m.def("set_default_device", [](const std::string& d) { set_default_device(parse_device(d)); }, "device"_a);
  m.def("synchronize", [](const std::string& d) {
    const Device device = parse_device(d);
    const nb::gil_scoped_release release;
    synchronize(device);
  }, "device"_a);
  m.def("device_info", [](const std::string& d) {
    const DeviceInfo& info = device_info(parse_device(d));
    nb::dict result;
    result["device"] = to_string(info.device);
    result["name"] = info.name;
    result["compute_capability"] = info.compute_capability;
    result["num_sms"] = info.num_sms;
    result["memory_bytes"] = info.memory_bytes;
    result["l2_bytes"] = info.l2_bytes;
    result["shared_bytes_per_block"] = info.shared_bytes_per_block;
    result["memory_gb_per_s"] = info.memory_gb_per_s;
    result["peak_bf16_tflops"] = info.peak_bf16_tflops;
    result["peak_fp32_tflops"] = info.peak_fp32_tflops;
    return result;
  }, "device"_a);
}

void register_trace(nb::module_& m) {
  nb::class_<op::Trace>(m, "Trace")
      .def(nb::init<>())
      .def("stop", &op::Trace::stop)
      .def("rows", [](const op::Trace& t) {
        nb::list rows;
        for (const auto& r : t.rows())
          rows.append(nb::make_tuple(std::string(r.op), std::string(r.variant), to_string(r.device), r.calls, r.milliseconds));
        return rows;
      });
}

}  // namespace
}  // namespace tensorcraft::python

NB_MODULE(_tensorcraft, m) {
  using namespace tensorcraft::python;
  m.doc() = "TensorCraft's native part; use the package tensorcraft.";
  m.attr("__version__") = std::string(tensorcraft::version());
  register_errors();
  register_tensor(m);
  register_devices(m);
  register_trace(m);
  m.def("call", &call, "index"_a, "inputs"_a, "options"_a, "out"_a.none(), "stream"_a.none(), "variant"_a.none(), "device"_a.none());
  m.def("explain", &explain, "index"_a, "inputs"_a, "options"_a, "variant"_a.none(), "device"_a.none());
}
