// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/safetensors/file.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft {

// How LazyWeights loads and keeps tensors.
struct LazyOptions {
  // Bytes that may be loaded at a time, beyond which tensors that nobody holds are dropped; 0 for
  // what the memory's source has.
  size_t quota = 0;
  // Keep a hash of each tensor for verify(), and compare what is loaded again with it.
  bool checksum = false;
  // Where the memory comes from, which has to be the device's; null: allocator(device).
  Allocator* source = nullptr;
};

// Counts the work of LazyWeights. At any time loaded_bytes - dropped_bytes = resident_bytes.
struct LazyStatistics {
  // Tensors that are on the device now.
  int64_t resident = 0, resident_bytes = 0;
  // Since it was made. A reload is also a load.
  int64_t loads = 0, loaded_bytes = 0;
  int64_t reloads = 0, reloaded_bytes = 0;
  int64_t drops = 0, dropped_bytes = 0;
};

// The tensors of a safetensors file, each loaded when it is first asked for. While an allocation
// finds no room on the device, those that nobody holds are dropped, the least recently used of all
// files first, and loaded again when they are asked for next. A tensor that cannot be loaded is an
// error of its own; the others can be had. A copy shares all. Safe for concurrent use.
class LazyWeights {
 public:
  // Reads and checks the headers only; the errors of SafeTensors.
  explicit LazyWeights(const std::string& path, Device device = Device::cpu(),
                       const LazyOptions& options = {});

  // These answer from the file, without a load.
  const std::vector<std::string>& names() const;
  bool contains(std::string_view name) const;
  const safetensors::TensorInfo& info(std::string_view name) const;
  Device device() const;

  // The tensor, loaded if it is not there; one load serves all threads that ask meanwhile. It stays
  // while anybody holds it. Work of the thread's current stream may use it, of another stream after
  // record(). The errors of SafeTensors::load(), and of the allocator; kind io if the checksum of a
  // tensor is not that of its first load, unsupported if it would be loaded while the current
  // stream is recorded into a graph.
  std::shared_ptr<const TensorResource> get(
      std::string_view name, std::source_location where = std::source_location::current()) const;
  // Is it on the device now?
  bool is_resident(std::string_view name) const;
  // Drops tensors that nobody holds until that are so many bytes; returns how many they are.
  size_t drop(size_t bytes = std::numeric_limits<size_t>::max()) const;
  // verify() of each tensor that is resident; kind value without LazyOptions::checksum.
  void verify() const;
  // All numbers are of one moment.
  LazyStatistics statistics() const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace tensorcraft
