// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"
#include "background.hpp"
#include "cache.hpp"
#include "call.hpp"
#include "dispatch.hpp"
#include "event.hpp"
#include "gil.hpp"
#include "graph.hpp"
#include "jit_module.hpp"
#include "kernel.hpp"
#include "library.hpp"
#include "packed.hpp"
#include "pool.hpp"
#include "scheduler.hpp"
#include "schema.hpp"
#include "sparse.hpp"
#include "stream.hpp"
#include "tensor.hpp"
#include "tune.hpp"
#include "transfer.hpp"
#include "weights.hpp"
#include "xla.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/prefixes.hpp"
#include "tensorcraft/core/version.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/launch/trace.hpp"
#include "tensorcraft/runtime/transfer/engine.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <new>
#include <stdexcept>
#include <system_error>

namespace nb = nanobind;
using namespace nb::literals;

namespace tensorcraft::python {
namespace {

// The exception classes are Python code (tensorcraft/errors.py); the kind's name picks one.
void raise(ErrorKind kind, const char* text) {
  const nb::object make = nb::module_::import_("tensorcraft.errors").attr("_make");
  const nb::object exception = make(std::string(to_string(kind)), from_text(text));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
}

// The C++ library throws it for a thread or memory that the system refuses, or for a file.
ErrorKind kind_of(const std::system_error& error) {
  const bool is_shortage = error.code() == std::errc::resource_unavailable_try_again ||
                           error.code() == std::errc::not_enough_memory;
  return is_shortage ? ErrorKind::out_of_memory : ErrorKind::io;
}

void register_errors() {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::cancelled && restore_interrupt()) return;
      raise(e.kind(), e.what());
    } catch (const std::bad_alloc&) {
      raise(ErrorKind::out_of_memory,
            "the host has no memory left for this call; free some, or ask for less");
    } catch (const std::system_error& e) {
      raise(kind_of(e), e.what());
    }
  });
}

nb::dict to_dict(const DeviceInfo& info) {
  nb::dict d;
  d["device"] = to_string(info.device);
  d["name"] = info.name;
  d["arch"] = info.arch();
  d["compute_capability"] = info.compute_capability;
  d["num_sms"] = info.num_sms;
  d["threads_per_sm"] = info.threads_per_sm;
  d["registers_per_sm"] = info.registers_per_sm;
  d["shared_bytes_per_sm"] = info.shared_bytes_per_sm;
  d["memory_bytes"] = info.memory_bytes;
  d["l2_bytes"] = info.l2_bytes;
  d["shared_bytes_per_block"] = info.shared_bytes_per_block;
  d["memory_gb_per_s"] = info.memory_gb_per_s;
  d["peak_bf16_tflops"] = info.peak_bf16_tflops;
  d["peak_fp8_tflops"] = info.peak_fp8_tflops;
  d["peak_fp32_tflops"] = info.peak_fp32_tflops;
  d["tensor_cores"] = info.has_tensor_cores();
  d["tma"] = info.has_tma();
  d["fp8"] = info.has_fp8();
  d["ue8m0"] = info.has_ue8m0();
  return d;
}

void register_devices(nb::module_& m) {
  m.def(
      "devices",
      [] {
        std::vector<std::string> names;
        for (const Device d : devices()) names.push_back(to_string(d));
        return names;
      },
      "Every usable device: \"cpu\", the GPUs, and \"simt\", the emulator, last.");
  m.def(
      "default_device", [] { return to_string(default_device()); },
      "Where host arrays are computed: what set_default_device() or TENSORCRAFT_DEVICE says, else "
      "the first usable GPU, else \"cpu\".");
  m.def(
      "set_default_device", [](nb::handle device) { set_default_device(to_device(device)); },
      "device"_a.none(),
      "Makes another device the default of this process: \"cpu\", \"cuda:1\", \"simt\". Raises "
      "ValueError for a text that is none, Unsupported for a device that cannot be used.");
  m.def(
      "synchronize",
      [](nb::handle device) {
        const Device d = to_device(device);
        if (d.is_cuda()) refuse_while_recording("synchronize");
        const WithoutGil released;
        if (d.is_cuda()) TransferEngine::synchronize(d);
        synchronize(d);
      },
      "device"_a.none(), "Waits for all work on a device.");
  m.def(
      "device_info", [](nb::handle device) { return to_dict(device_info(to_device(device))); },
      "device"_a.none(), "What a device is and can do, as a dict.");
  for (const char* name : {"devices", "default_device"})
    refuse_others(m, name, "takes no arguments");
  for (const char* name : {"set_default_device", "synchronize", "device_info"})
    refuse_others(m, name, "takes one argument, device");
}

// Types and the state of the GPU are of the process: a second module would register them again.
void refuse_second_import() {
  static bool is_imported = false;
  if (PyInterpreterState_Get() != PyInterpreterState_Main())
    throw std::runtime_error("tensorcraft can be imported in the main interpreter only");
  if (is_imported)
    throw std::runtime_error(
        "tensorcraft is in this process already and cannot be imported again; keep its modules in "
        "sys.modules");
  is_imported = true;
}

void register_trace(nb::module_& m) {
  nb::class_<op::Trace>(m, "Trace", "What tc.Trace records with.")
      .def(nb::init<>())
      .def("stop", &op::Trace::stop, "Stops recording.")
      .def("rows", [](const op::Trace& t) {
        std::vector<op::Trace::Row> recorded;
        {
          const WithoutGil released;  // it waits for the GPU
          recorded = t.rows();
        }
        nb::list rows;
        for (const auto& r : recorded)
          rows.append(nb::make_tuple(std::string(r.op), std::string(r.variant), to_string(r.device),
                                     r.calls, r.milliseconds));
        return rows;
      });
}

}  // namespace
}  // namespace tensorcraft::python

NB_MODULE(_tensorcraft, m) {
  using namespace tensorcraft::python;
  refuse_second_import();
  nb::set_leak_warnings(false);  // tensors that live until exit are the user's choice
  m.doc() = "TensorCraft's native part; use the package tensorcraft.";
  m.def(
      "add_prefix", [](const nb::str& path) { tensorcraft::add_prefix(to_path(path)); }, "path"_a);
  m.attr("__version__") = std::string(tensorcraft::version());
  stop_threads_at_exit();
  register_errors();
  register_tensor(m);
  register_stream(m);
  register_event(m);
  register_jit_module(m);
  register_graph(m);
  register_devices(m);
  register_trace(m);
  register_cache(m);
  register_kernel(m);
  register_library(m);
  register_packed(m);
  register_pool(m);
  register_weights(m);
  register_background(m);
  register_scheduler(m);
  register_schema(m);
  register_xla(m);
  register_sparse(m);
  register_transfer(m);
  register_dispatch(m);
  m.def("call", &call, "index"_a, "inputs"_a, "options"_a, "out"_a.none(), "stream"_a.none(),
        "variant"_a.none(), "device"_a.none(), "Runs an operator.");
  m.def("operator_index", &operator_index, "name"_a, "Where an operator is in the registry.");
  register_tune(m);
  m.def("explain", &explain, "index"_a, "inputs"_a, "options"_a, "out"_a.none(), "stream"_a.none(),
        "variant"_a.none(), "device"_a.none(), "arch"_a.none(), "What tc.explain calls.");
}
