// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/graph_memory.hpp"

#include <mutex>
#include <unordered_map>

namespace tensorcraft::cuda {

// A word that is 0 whenever no work of `stream` runs, for kernels that count with it and leave it
// 0: it is not cleared before a launch. Null while the stream is recorded, as the graph may run
// beside the stream; for a stream that comes after the first StreamCounters::kMax of a device; and
// if the driver refuses: use a word that is cleared.
uint32_t* counter_of(StreamRef stream);

// The counters of a device. They live as long as the process, and so do the numbers by which the
// driver knows streams: their handles are used again. Internal to cuda/.
class StreamCounters {
 public:
  static constexpr size_t kMax = 1024;
  // An address in a block of `memory`; 0 if there is none.
  DevicePointer of(const Driver& driver, CUstream_st* stream, GraphMemory& memory);

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, DevicePointer> counters_;  // by the stream's number
};

}  // namespace tensorcraft::cuda
