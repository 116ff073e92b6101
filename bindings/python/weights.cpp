// SPDX-License-Identifier: Apache-2.0
#include "weights.hpp"

#include "arguments.hpp"
#include "gil.hpp"
#include "memory.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/runtime/safetensors/file.hpp"
#include "tensorcraft/runtime/safetensors/lazy_weights.hpp"

#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tensorcraft::python {
namespace {

using namespace nb::literals;

Device device_of(nb::handle device) {
  return device.is_none() ? default_device() : to_device(device);
}

nb::tuple shape_of(const safetensors::TensorInfo& info) {
  nb::list shape;
  for (const int64_t size : info.shape) shape.append(size);
  return nb::tuple(shape);
}

// Why a tensor of the file is not loaded: the kind and the text of the error that asking for it is,
// its dtype as the file calls it, and its shape.
nb::tuple refusal_of(const SafeTensors& file, const std::string& name) {
  const safetensors::TensorInfo& info = file.info(name);
  try {
    file.load(name);
  } catch (const Error& e) {
    return nb::make_tuple(to_string(e.kind()).data(), std::string(e.what()),
                          std::string(info.format), shape_of(info));
  }
  fail(ErrorKind::internal, "safetensors: ", name, " was left out and can be loaded");
}

nb::dict load_safetensors(nb::handle path, nb::handle device) {
  const std::string place = to_path(path);
  const Device on = device_of(device);
  std::optional<SafeTensors> file;
  std::vector<std::shared_ptr<const TensorResource>> loaded;
  {
    const WithoutGil released;
    file.emplace(place);
    loaded = file->load_all(on, {.skip_refused = true});
  }
  nb::dict tensors;
  auto next = loaded.begin();
  for (const std::string& name : file->names()) {
    const nb::str key(name.data(), name.size());
    if (next == loaded.end() || (*next)->name() != name) {
      tensors[key] = refusal_of(*file, name);
      continue;
    }
    auto memory = std::make_shared<Memory>(*next, on, current_stream(on.index));
    tensors[key] = PyTensor{(*next++)->view(), std::move(memory)};
  }
  return tensors;
}

// A lazy mapping calls this.
class LazyObject {
 public:
  LazyObject(nb::handle path, nb::handle device, nb::handle quota, bool checksum) {
    const std::string place = to_path(path);
    const Device on = device_of(device);
    const int64_t most = to_int64(quota, "load_safetensors: quota");
    if (most < 0)
      fail(ErrorKind::value, "load_safetensors: quota must be at least 0, got ", most,
           "; 0 is for what the device has");
    const WithoutGil released;
    weights_.emplace(place, on, LazyOptions{.quota = size_t(most), .checksum = checksum});
  }

  // As load_safetensors() gives what it does not load, without an error.
  nb::dict entries() const {
    nb::dict found;
    for (const std::string& name : weights_->names()) {
      const safetensors::TensorInfo& info = weights_->info(name);
      const nb::object dtype = info.dtype && info.shape.size() <= size_t(kMaxRank)
                                   ? nb::cast(*info.dtype)
                                   : nb::cast(std::string(info.format));
      found[nb::str(name.data(), name.size())] = nb::make_tuple("", "", dtype, shape_of(info));
    }
    return found;
  }

  PyTensor get(const std::string& name) const {
    std::shared_ptr<const TensorResource> resource;
    {
      const WithoutGil released;
      resource = weights_->get(name);
    }
    return {resource->view(), std::make_shared<Memory>(resource, weights_->device())};
  }
  bool is_resident(const std::string& name) const { return weights_->is_resident(name); }
  size_t drop() const {
    const WithoutGil released;
    return weights_->drop();
  }
  void verify() const {
    const WithoutGil released;
    weights_->verify();
  }
  nb::dict stats() const {
    const LazyStatistics s = weights_->statistics();
    nb::dict d;
    d["resident"] = s.resident;
    d["resident_bytes"] = s.resident_bytes;
    d["loads"] = s.loads;
    d["loaded_bytes"] = s.loaded_bytes;
    d["reloads"] = s.reloads;
    d["reloaded_bytes"] = s.reloaded_bytes;
    d["drops"] = s.drops;
    d["dropped_bytes"] = s.dropped_bytes;
    return d;
  }

 private:
  std::optional<LazyWeights> weights_;
};

}  // namespace

void register_weights(nb::module_& m) {
  m.def("load_safetensors", &load_safetensors, "path"_a.none(), "device"_a.none(),
        "What tc.load_safetensors calls.");
  nb::class_<LazyObject>(m, "LazyWeights", "What tc.load_safetensors(lazy=True) calls.")
      .def(nb::init<nb::handle, nb::handle, nb::handle, bool>(), "path"_a.none(), "device"_a.none(),
           "quota"_a.none(), "checksum"_a)
      .def("entries", &LazyObject::entries)
      .def("get", &LazyObject::get, "name"_a)
      .def("is_resident", &LazyObject::is_resident, "name"_a)
      .def("drop", &LazyObject::drop)
      .def("verify", &LazyObject::verify)
      .def("stats", &LazyObject::stats);
}

}  // namespace tensorcraft::python
