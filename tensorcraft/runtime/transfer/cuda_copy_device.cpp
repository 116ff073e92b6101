// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/runtime/memory/cuda_memory_device.hpp"
#include "tensorcraft/runtime/memory/pinned.hpp"
#include "tensorcraft/runtime/transfer/copy_device.hpp"

#include <array>
#include <map>
#include <optional>

namespace tensorcraft::transfer {
namespace {

class CudaCopyDevice final : public CopyDevice {
 public:
  explicit CudaCopyDevice(int device) : device_(device), staging_(pinned_pool(device)) {
    for (auto& lane : lanes_) lane.emplace(device);
  }
  bool usable() const noexcept override { return cuda::usable(); }
  bool is_pageable(const void* host) override { return cuda::is_pageable(host, device_); }
  Allocator& staging() override { return staging_; }

  StreamRef lane(Direction direction) override { return *lanes_[size_t(direction)]; }
  std::unique_ptr<memory::Mark> make_mark(StreamRef of) override {
    auto& memory = of_marks_[of.device()];
    if (!memory) memory = memory::cuda_memory_device(of.device());
    if (!memory->can_mark(of))
      fail(ErrorKind::value,
           "TransferEngine: the stream is recorded into a graph; copy before or after the "
           "recording");
    return memory->make_mark();
  }
  void copy(const Request& request, void* to, const void* from, size_t bytes) override {
    if (request.direction == Direction::peer)
      cuda::copy_to_peer_async(to, request.peer, from, bytes, lane(Direction::peer));
    else
      cuda::copy_async(to, from, bytes, lane(request.direction));
  }
  void synchronize(StreamRef lane) override { lane.synchronize(); }

 private:
  const int device_;
  Allocator& staging_;  // outlives the driver
  std::array<std::optional<Stream>, kDirections> lanes_;
  std::map<int, std::unique_ptr<memory::MemoryDevice>> of_marks_;  // by device
};

}  // namespace

std::unique_ptr<CopyDevice> cuda_copy_device(int device) {
  return std::make_unique<CudaCopyDevice>(device);
}

}  // namespace tensorcraft::transfer
