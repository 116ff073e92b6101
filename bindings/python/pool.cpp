// SPDX-License-Identifier: Apache-2.0
#include "pool.hpp"

#include "arguments.hpp"
#include "gil.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/runtime/memory/pool.hpp"

#include <vector>

namespace tensorcraft::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

Device device_of(nb::handle device) {
  return device.is_none() ? default_device() : to_device(device);
}

nb::dict stats(nb::handle device) {
  const AllocatorStatistics s = allocator(device_of(device)).statistics();
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

}  // namespace

void register_pool(nb::module_& m) {
  m.def("memory_stats", &stats, "device"_a.none(), "What tc.memory.stats calls.");
  m.def("memory_trim", &trim, "device"_a.none(), "What tc.memory.trim calls.");
  m.def("memory_set_quota", &set_quota, "bytes"_a.none(), "device"_a.none(),
        "What tc.memory.set_quota calls.");
  m.def("memory_snapshot", &snapshot, "device"_a.none(), "What tc.memory.snapshot calls.");
}

}  // namespace tensorcraft::python
