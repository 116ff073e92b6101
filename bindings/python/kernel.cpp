// SPDX-License-Identifier: Apache-2.0
#include "kernel.hpp"

#include "arguments.hpp"
#include "arrays.hpp"
#include "gil.hpp"
#include "graph.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/launch_watcher.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/jit/user_kernel.hpp"

#include <nanobind/stl/string.h>

#include <array>
#include <atomic>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tensorcraft::python {
namespace {

using namespace nb::literals;

// tc.kernel makes one.
struct PyKernel {
  jit::UserKernel kernel;
  std::optional<Device> host_device;        // where host arrays are computed; else the default
  std::atomic<uint64_t> loaded_devices{0};  // bit i: a launch on cuda:i is quick

  PyKernel(jit::UserKernel made, std::optional<Device> device)
      : kernel(std::move(made)), host_device(device) {}
  const std::string& name() const { return kernel.signature().name; }
  Device device_of_host() const { return host_device ? *host_device : default_device(); }
};

// k[grid, block, shared, stream] makes one; it can be kept and called again.
struct PyLaunch {
  nb::object kernel_object;  // keeps the kernel alive
  PyKernel* kernel = nullptr;
  Dim3 grid, block;
  uint32_t shared_bytes = 0;
  nb::object stream;
};

// A number of another package, such as numpy.float32.
bool is_scalar(nb::handle value) {
  return PyNumber_Check(value.ptr()) && !nb::hasattr(value, "__dlpack__") && !is_list(value) &&
         !PyComplex_Check(value.ptr());
}

jit::KernelConstant to_constant(std::string name, nb::handle value) {
  if (is_bool(value)) return {std::move(name), PyObject_IsTrue(value.ptr()) == 1};
  if (PyFloat_Check(value.ptr())) return {std::move(name), PyFloat_AS_DOUBLE(value.ptr())};
  if (const nb::object whole = as_index(value); whole.is_valid())
    return {name, to_int64(whole, "kernel: the constant " + name)};
  if (const auto dtype = find_dtype(value)) return {std::move(name), *dtype};
  if (is_scalar(value)) return {name, to_double(value, "kernel: the constant " + name)};
  fail(ErrorKind::type, "kernel: the constant ", name,
       " must be a bool, an int, a float or a dtype, got ", class_name(value));
}

jit::UserKernel make_kernel(nb::handle source, nb::handle signature, nb::handle name,
                            nb::dict constants) {
  std::vector<jit::KernelConstant> values;
  for (const auto& [key, value] : constants)
    values.push_back(to_constant(std::string(to_text(key, "kernel: a constant")), value));
  const std::string file =
      name.is_none() ? std::string() : std::string(to_text(name, "kernel: name"));
  // Not to_text: the library says where a NUL stands.
  if (!PyUnicode_Check(source.ptr()))
    fail(ErrorKind::type, "kernel: source must be text, got ", class_name(source));
  Py_ssize_t bytes = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(source.ptr(), &bytes);
  if (!text) {
    PyErr_Clear();
    fail(ErrorKind::value, "kernel: source is not UTF-8 text");
  }
  return jit::UserKernel(std::string(text, size_t(bytes)), to_text(signature, "kernel: signature"),
                         std::move(values), file);
}

uint32_t to_extent(const PyKernel& k, nb::handle value, const char* what) {
  const nb::object whole = as_index(value);
  if (!whole.is_valid())
    fail(ErrorKind::type, k.name(), ": ", what,
         " must be an integer or a tuple of up to three, got ", class_name(value));
  const int64_t number = to_int64(whole, what);
  if (number < 0 || number > std::numeric_limits<uint32_t>::max())
    fail(
        ErrorKind::value, k.name(), ": ", what, " has ", number,
        "; a grid has 1 to 2147483647 blocks along x and to 65535 along y and z, a block 1 to 1024 "
        "threads");
  return uint32_t(number);
}

Dim3 to_dim3(const PyKernel& k, nb::handle value, const char* what) {
  if (!is_list(value)) return {to_extent(k, value, what)};
  const size_t size = nb::len(value);
  if (size < 1 || size > 3)
    fail(ErrorKind::value, k.name(), ": ", what, " has one to three numbers, got ", size);
  uint32_t extents[3] = {1, 1, 1};
  for (size_t i = 0; i < size; ++i) extents[i] = to_extent(k, value[i], what);
  return {extents[0], extents[1], extents[2]};
}

uint32_t to_shared_bytes(const PyKernel& k, nb::handle value) {
  const nb::object whole = as_index(value);
  if (!whole.is_valid())
    fail(ErrorKind::type, k.name(), ": shared must be a number of bytes, got ", class_name(value));
  const int64_t bytes = to_int64(whole, "shared");
  if (bytes < 0 || bytes > std::numeric_limits<uint32_t>::max())
    fail(ErrorKind::value, k.name(), ": shared must be bytes that a block can have, got ", bytes);
  return uint32_t(bytes);
}

PyLaunch make_launch(nb::handle self, nb::handle key) {
  PyKernel& k = *nb::inst_ptr<PyKernel>(self);
  if (!PyTuple_Check(key.ptr()) || nb::len(key) < 2 || nb::len(key) > 4)
    fail(ErrorKind::value, k.name(),
         ": a launch is k[grid, block], k[grid, block, shared] or k[grid, block, shared, stream]");
  const size_t size = nb::len(key);
  const bool has_shared = size > 2 && !nb::handle(key[2]).is_none();
  return {.kernel_object = nb::borrow(self),
          .kernel = &k,
          .grid = to_dim3(k, key[0], "grid"),
          .block = to_dim3(k, key[1], "block"),
          .shared_bytes = has_shared ? to_shared_bytes(k, key[2]) : 0,
          .stream = size > 3 ? nb::object(key[3]) : nb::none()};
}

// The arguments of one call, as the kernel takes them, and what a call must do about their memory.
class Arguments {
 public:
  Arguments(const PyLaunch& launch, nb::args given)
      : launch_(launch), packed_(launch.kernel->kernel.signature()) {
    for (nb::handle argument : given) {
      const jit::KernelParameter& p = packed_.next();
      if (p.is_array())
        add_array(p, argument);
      else
        add_number(p, argument);
    }
    packed_.check_complete();
  }
  const jit::UserArguments& packed() const { return packed_; }
  Device device() const {
    return packed_.device() ? *packed_.device() : launch_.kernel->device_of_host();
  }
  // Returns the stream of a launch on a GPU.
  StreamRef stream() const {
    const int device = this->device().index;
    if (!launch_.stream.is_none()) return to_stream(launch_.stream, device);
    return leader_ ? stream_of(*leader_, device) : current_stream(device);
  }
  // A kernel may write each of its arrays.
  void settle(StreamRef stream) const {
    for (size_t i = 0; i < num_used_; ++i)
      if (used_[i].memory) used_[i].memory->settle(stream, true);
  }
  void mark_used(StreamRef stream) const {
    for (size_t i = 0; i < num_used_; ++i) note_use(used_[i].memory, used_[i].object, stream);
  }

 private:
  struct Used {
    std::shared_ptr<Memory> memory;
    nb::handle object;
  };
  const std::string& name() const { return launch_.kernel->name(); }

  void add_array(const jit::KernelParameter& p, nb::handle object) {
    const auto uint64 = p.number == jit::NumberType::uint64 ? Uint64::as_int64 : Uint64::refused;
    ArrayArgument a = to_array(object, name(), p.name, launch_.stream, DType::int64, {}, uint64);
    if (a.is_number() || !a.object.is_valid())
      fail(ErrorKind::type, name(), ": ", p.name, ": expected an array of ", to_string(p.number),
           ", got ", class_name(object),
           "; a kernel works in the memory of arrays that the caller keeps");
    if (a.view.device() == Device::cpu()) {
      const Device device = launch_.kernel->device_of_host();
      if (device != Device::simt())
        fail(ErrorKind::value, name(), ": ", p.name,
             " is in host memory, and the kernel runs on a GPU or on the emulator; move it with "
             "tc.asarray(",
             p.name, ", device=\"cuda\"), or make the kernel with device=\"simt\"");
      a.view = on_device(a.view, device);
    }
    packed_.add(a.view);
    used_[num_used_++] = {a.memory, a.object};
    if (!leader_ && a.view.device().is_cuda()) leader_ = std::move(a);
  }

  void add_number(const jit::KernelParameter& p, nb::handle object) {
    PyObject* const o = object.ptr();
    if (PyFloat_Check(o)) return packed_.add(PyFloat_AS_DOUBLE(o));
    if (PyLong_Check(o)) return add_whole(p, object);  // a bool too
    if (is_bool(object)) return packed_.add(PyObject_IsTrue(o) == 1);
    const bool is_array = nb::hasattr(object, "__dlpack__") || is_list(object);
    if (is_array || !PyNumber_Check(o))
      fail(ErrorKind::type, name(), ": ", p.name, ": expected a number (", to_string(p.number),
           "), got ", class_name(object),
           is_array ? "; write a pointer in the signature to take "
                      "an array, or give x.item()"
                    : "");
    if (const nb::object whole = as_index(object); whole.is_valid()) return add_whole(p, whole);
    packed_.add(to_double(object, p.name));
  }

  void add_whole(const jit::KernelParameter& p, nb::handle number) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (!overflow) return packed_.add(int64_t(value));
    const unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(number.ptr()) : ~0ull;
    if (overflow < 0 || PyErr_Occurred()) {
      PyErr_Clear();
      fail(ErrorKind::value, name(), ": ", p.name, ": the number does not fit ",
           to_string(p.number));
    }
    packed_.add(uint64_t(large));
  }

  const PyLaunch& launch_;
  jit::UserArguments packed_;
  std::optional<ArrayArgument> leader_;  // the first on a GPU
  std::array<Used, jit::kMaxKernelParameters> used_;
  size_t num_used_ = 0;
};

void run(const PyLaunch& launch, nb::args given) {
  PyKernel& k = *launch.kernel;
  const Arguments arguments(launch, given);
  jit::UserLaunch how{
      .grid = launch.grid, .block = launch.block, .shared_bytes = launch.shared_bytes};
  const Device device = arguments.device();
  how.device = device;
  if (!device.is_cuda()) {
    if (!launch.stream.is_none())
      fail(ErrorKind::value, k.name(), ": stream was given, and the kernel runs on ", device,
           ", which has none; leave it out");
    require_recorded(k.name(), device, StreamRef(), false);
    arguments.settle(StreamRef());
    const WithoutGil released;
    return k.kernel.launch(how, arguments.packed());
  }
  const StreamRef stream = arguments.stream();
  how.stream = stream;
  require_recorded(k.name(), device, stream, false);
  arguments.settle(stream);
  const uint64_t bit = device.index < 64 ? uint64_t(1) << device.index : 0;
  if (k.loaded_devices.load(std::memory_order_relaxed) & bit && !cuda::launch_watcher()) {
    k.kernel.launch(how, arguments.packed());
  } else {
    const WithoutGil released;  // it may compile, or wait for the limit of a stream
    k.kernel.launch(how, arguments.packed());
    k.loaded_devices.fetch_or(bit, std::memory_order_relaxed);
  }
  arguments.mark_used(stream);
}

nb::dict explain(const PyKernel& k, nb::handle block, nb::handle shared, nb::handle device,
                 nb::handle arch) {
  const Dim3 threads = to_dim3(k, block, "block");
  const uint32_t shared_bytes = to_shared_bytes(k, shared);
  const DeviceInfo target = !arch.is_none()    ? device_info_of_arch(to_text(arch, "arch"))
                            : device.is_none() ? device_info(k.device_of_host())
                                               : device_info(to_device(device));
  jit::UserKernelReport r;
  {
    const WithoutGil released;
    r = k.kernel.report(target, threads, shared_bytes);
  }
  nb::dict d;
  d["signature"] = r.signature;
  d["arch"] = r.arch;
  d["block"] = nb::make_tuple(r.block.x, r.block.y, r.block.z);
  d["registers"] = r.registers;
  d["shared_bytes"] = r.shared_bytes;
  d["spill_bytes"] = r.spill_bytes;
  d["stack_bytes"] = r.stack_bytes;
  d["code_bytes"] = r.code_bytes;
  d["compile_ms"] = r.compile_ms;
  d["origin"] = std::string(r.origin);
  d["blocks_per_sm"] = r.occupancy.blocks_per_sm;
  d["occupancy"] = r.occupancy.fraction;
  d["limited_by"] = std::string(r.occupancy.limit);
  d["problem"] = r.problem;
  d["text"] = to_string(r);
  return d;
}

nb::object refuse_pickle(const PyKernel& k) {
  fail(ErrorKind::type, k.name(),
       ": a kernel cannot be pickled or copied; send its source and signature, and call tc.kernel "
       "there: it comes from the cache");
}

}  // namespace

void register_kernel(nb::module_& m) {
  nb::class_<PyLaunch> launches(m, "KernelLaunch",
                                "A kernel with its grid and block; call it with the arguments.");
  launches.def("__call__", &run, "args"_a);
  refuse_others(launches, "__call__", "takes the kernel's arguments by position");
  nb::class_<PyKernel> kernels(m, "UserKernel", "What tc.kernel makes: k[grid, block](arguments).");
  kernels
      .def(
          "__init__",
          [](PyKernel* k, nb::handle source, nb::handle signature, nb::handle name,
             nb::handle device, nb::dict constants) {
            std::optional<Device> host;
            if (!device.is_none()) host = to_device(device);
            new (k) PyKernel(make_kernel(source, signature, name, constants), host);
          },
          "source"_a.none(), "signature"_a.none(), "name"_a.none(), "device"_a.none(),
          "constants"_a)
      .def("__getitem__", &make_launch, "key"_a.none(),
           "k[grid, block], k[grid, block, shared] or k[grid, block, shared, stream].")
      .def("_explain", &explain, "block"_a.none(), "shared"_a.none(), "device"_a.none(),
           "arch"_a.none(), "What explain() calls.")
      .def("__reduce__", &refuse_pickle)
      .def("__repr__",
           [](const PyKernel& k) { return "<tc.kernel " + to_string(k.kernel.signature()) + ">"; })
      .def_prop_ro(
          "name", [](const PyKernel& k) { return k.name(); }, "The function's name.")
      .def_prop_ro(
          "signature", [](const PyKernel& k) { return to_string(k.kernel.signature()); },
          "The signature as it was understood, in C's types.");
  refuse_others(kernels, "__call__",
                "a kernel is called with its grid and block: k[grid, block](arguments)");
  refuse_others(kernels, "__init__", "make a kernel with tc.kernel(source, signature)");
}

}  // namespace tensorcraft::python
