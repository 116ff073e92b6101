// SPDX-License-Identifier: Apache-2.0
#include "pool.hpp"

#include "arguments.hpp"
#include "gil.hpp"
#include "memory.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/runtime/memory/cuda_memory_device.hpp"
#include "tensorcraft/runtime/memory/host_memory_device.hpp"
#include "tensorcraft/runtime/memory/pinned.hpp"
#include "tensorcraft/runtime/memory/pool.hpp"

#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>

namespace tensorcraft::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

Device device_of(nb::handle device) {
  return device.is_none() ? default_device() : to_device(device);
}

nb::dict to_dict(const AllocatorStatistics& s) {
  nb::dict d;
  d["live_blocks"] = s.live_blocks;
  d["live_bytes"] = s.live_bytes;
  d["quota"] = s.quota;
  d["reserved"] = s.reserved;
  d["used"] = s.used;
  d["cached"] = s.cached;
  d["available"] = s.available;
  d["peak_used"] = s.peak_used;
  d["peak_reserved"] = s.peak_reserved;
  d["captured"] = s.captured;
  d["free_blocks"] = s.free_blocks;
  d["allocations"] = s.allocations;
  d["reuses"] = s.reuses;
  d["driver_allocations"] = s.driver_allocations;
  d["evictions"] = s.evictions;
  d["restores"] = s.restores;
  d["evicted_blocks"] = s.evicted_blocks;
  d["evicted_bytes"] = s.evicted_bytes;
  d["pinned_blocks"] = s.pinned_blocks;
  return d;
}

nb::dict stats(nb::handle device) { return to_dict(allocator(device_of(device)).statistics()); }

size_t trim(nb::handle device) {
  Allocator& source = allocator(device_of(device));
  const WithoutGil released;  // it waits for the device
  return source.trim();
}

void set_quota(nb::handle bytes, nb::handle device) {
  const int64_t quota = to_int64(bytes, "bytes");
  const Device on = device_of(device);
  const WithoutGil released;
  tensorcraft::set_quota(on, quota);
}

nb::list snapshot(nb::handle device) {
  nb::list pieces;
  for (const PoolPiece& piece : tensorcraft::snapshot(device_of(device)))
    pieces.append(nb::make_tuple(reinterpret_cast<uintptr_t>(piece.segment),
                                 reinterpret_cast<uintptr_t>(piece.data), piece.bytes, piece.free,
                                 piece.captured));
  return pieces;
}

size_t pool_number(nb::handle object, const char* name) {
  const int64_t bytes = to_int64(object, name);
  if (bytes < 0) fail(ErrorKind::value, "MemoryPool: ", name, " must be at least 0, got ", bytes);
  return size_t(bytes);
}

BlockId to_block(nb::handle object) { return BlockId(pool_number(object, "block")); }

// tc.MemoryPool calls this. Tensors of pinned blocks keep the pool.
class PoolObject {
 public:
  PoolObject(nb::handle quota, nb::handle device)
      : device_(device.is_none() ? default_device() : to_device(device)) {
    if (device_.type == DeviceType::simt)
      fail(ErrorKind::unsupported, "MemoryPool: simt has the memory of the host; give cpu");
    const size_t bytes = pool_number(quota, "quota");
    if (device_.is_cuda())
      pool_ = std::make_shared<MemoryPool>(
          memory::cuda_memory_device(device_.index),
          PoolOptions{.quota = bytes, .host = &pinned_pool(device_.index)});
    else
      pool_ = std::make_shared<MemoryPool>(
          memory::host_memory_device(),
          PoolOptions{.quota = bytes, .host = &allocator(Device::cpu())});
  }

  BlockId allocate(nb::handle bytes) {
    const size_t size = pool_number(bytes, "bytes");
    if (size == 0) fail(ErrorKind::value, "MemoryPool: a block must have at least 1 byte");
    const WithoutGil released;  // it may wait for the device
    return pool_->create(size, stream());
  }
  void free(nb::handle block) { call(&MemoryPool::release, block); }
  void evict(nb::handle block) { call(&MemoryPool::evict, block); }
  void restore(nb::handle block) { call(&MemoryPool::restore, block); }
  void touch(nb::handle block) { pool_->touch(to_block(block)); }

  PyTensor pin(nb::handle block, nb::handle shape, nb::handle dtype) {
    const BlockId id = to_block(block);
    const MemoryBlock found = pool_->block(id);
    const DType type = dtype.is_none() ? DType::uint8 : to_dtype(dtype);
    const Dims dims =
        shape.is_none() ? Dims{int64_t(found.size / dtype_bytes(type))} : to_dims(shape);
    const TensorView wanted(nullptr, type, dims, device_);
    if (bytes_of(type, wanted.size()) > found.size)
      fail(ErrorKind::value, "MemoryPool: ", wanted.size(), " elements of ", type,
           " do not fit in block ", id, " of ", found.size, " bytes");
    const StreamRef home = stream();
    void* data = nullptr;
    {
      const WithoutGil released;
      data = pool_->pin(id, home);
    }
    std::shared_ptr<const void> pinned(data, [pool = pool_, id, home](const void*) {
      try {
        pool->unpin(id, home);
      } catch (const std::exception&) {  // of a lost device
      }
    });
    return {{data, type, dims, device_},
            std::make_shared<Memory>(std::move(pinned), device_, home)};
  }

  size_t trim() {
    const WithoutGil released;
    return pool_->trim();
  }
  void set_quota(nb::handle quota) { pool_->set_quota(pool_number(quota, "quota")); }
  nb::dict stats() const { return to_dict(pool_->statistics()); }
  // id, bytes, on the device, last access, pins.
  nb::list blocks() const {
    nb::list all;
    for (const MemoryBlock& b : pool_->blocks())
      all.append(nb::make_tuple(b.id, b.size, b.on_gpu(), b.last_access, b.pins));
    return all;
  }
  std::string device() const { return to_string(device_); }

 private:
  StreamRef stream() const {
    return device_.is_cuda() ? current_stream(device_.index) : StreamRef();
  }
  void call(void (MemoryPool::*method)(BlockId, StreamRef), nb::handle block) {
    const BlockId id = to_block(block);
    const WithoutGil released;
    (*pool_.*method)(id, stream());
  }

  const Device device_;
  std::shared_ptr<MemoryPool> pool_;
};

// Memory of the host that the GPU reaches; of any kind where there is no GPU.
PyTensor pinned(nb::handle shape, nb::handle dtype, nb::handle device) {
  const Dims dims = to_dims(shape, "shape");
  const DType type = dtype.is_none() ? DType::float32 : to_dtype(dtype);
  const Device beside = device_of(device);
  if (!beside.is_cuda()) return own(Tensor(type, dims, Device::cpu()), {});
  const StreamRef stream = current_stream(beside.index);
  const WithoutGil released;  // the driver may take milliseconds
  return own(Tensor(type, dims, Device::cpu(), stream, pinned_pool(beside.index)), stream);
}

}  // namespace

void register_pool(nb::module_& m) {
  m.def("memory_stats", &stats, "device"_a.none(), "What tc.memory.stats calls.");
  m.def("memory_trim", &trim, "device"_a.none(), "What tc.memory.trim calls.");
  m.def("memory_set_quota", &set_quota, "bytes"_a.none(), "device"_a.none(),
        "What tc.memory.set_quota calls.");
  m.def("memory_pinned", &pinned, "shape"_a.none(), "dtype"_a.none(), "device"_a.none(),
        "What tc.memory.pinned calls.");
  m.def("memory_snapshot", &snapshot, "device"_a.none(), "What tc.memory.snapshot calls.");
  nb::class_<PoolObject>(m, "MemoryPool", "What tc.MemoryPool calls.")
      .def(nb::init<nb::handle, nb::handle>(), "quota"_a.none(), "device"_a.none())
      .def("allocate", &PoolObject::allocate, "bytes"_a.none())
      .def("free", &PoolObject::free, "block"_a.none())
      .def("evict", &PoolObject::evict, "block"_a.none())
      .def("restore", &PoolObject::restore, "block"_a.none())
      .def("touch", &PoolObject::touch, "block"_a.none())
      .def("pin", &PoolObject::pin, "block"_a.none(), "shape"_a.none(), "dtype"_a.none())
      .def("trim", &PoolObject::trim)
      .def("set_quota", &PoolObject::set_quota, "quota"_a.none())
      .def("stats", &PoolObject::stats)
      .def("blocks", &PoolObject::blocks)
      .def_prop_ro("device", &PoolObject::device);
}

}  // namespace tensorcraft::python
