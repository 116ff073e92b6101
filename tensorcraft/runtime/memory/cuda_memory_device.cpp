// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/memory/cuda_memory_device.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/graph_memory.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/cuda/relaxed_recording.hpp"
#include "tensorcraft/cuda/stream_state.hpp"

#include <unistd.h>

#include <string>

namespace tensorcraft::memory {
namespace {

// A thread that records a graph may ask for the state of other work too.
class CudaMark final : public Mark {
 public:
  explicit CudaMark(int device) : device_(device), event_(device) {}
  void record(StreamRef stream) override { event_.record(stream); }
  bool done() override {
    const DeviceGuard guard(device_);
    const cuda::RelaxedRecording relaxed(cuda::require_driver());
    return event_.done();
  }
  void order_before(StreamRef stream) override { event_.wait(stream); }
  void wait() override {
    const DeviceGuard guard(device_);
    const cuda::RelaxedRecording relaxed(cuda::require_driver());
    event_.synchronize();
  }

 private:
  const int device_;
  Event event_;
};

class CudaMemoryDevice : public MemoryDevice {
 public:
  explicit CudaMemoryDevice(int device, std::string name = {})
      : index_(device),
        name_(name.empty() ? to_string(Device::cuda(device)) : std::move(name)),
        driver_(cuda::driver_number()) {}

  const char* name() const override { return name_.c_str(); }
  void* take(size_t bytes) override { return cuda::allocate_segment(bytes, index_); }
  void give(void* memory) noexcept override { cuda::deallocate_segment(memory, index_); }
  size_t total_bytes() const override { return device_info(Device::cuda(index_)).memory_bytes; }
  size_t free_bytes() const override { return cuda::free_bytes(index_); }

  void require_usable() const override {
    cuda::require_usable();
    if (!usable())
      fail(ErrorKind::device_lost, "the memory of ", name_, " belongs to an earlier driver");
  }
  bool usable() const noexcept override {
    return cuda::driver_number() == driver_ && cuda::usable();
  }

  StreamState look(StreamRef stream) override {
    if (stream.device() != index_)
      fail(ErrorKind::value, "memory of cuda:", index_,
           " was asked for on a stream of cuda:", stream.device(),
           "; use a stream of the memory's device");
    const uint64_t recording = cuda::recording_number(stream);
    return {cuda::stream_number(stream, recording != 0), recording};
  }
  bool lasts(StreamRef stream) override { return cuda::tells_its_end(stream); }
  bool can_mark(StreamRef stream) override { return !stream.is_capturing(); }
  std::unique_ptr<Mark> make_mark() override { return std::make_unique<CudaMark>(index_); }

  void copy(void* to, const void* from, size_t bytes, StreamRef stream) override {
    cuda::copy_async(to, from, bytes, stream);
  }
  void fill(void* to, unsigned char value, size_t bytes, StreamRef stream) override {
    cuda::fill_async(to, value, bytes, stream);
  }
  void synchronize(StreamRef stream) override { stream.synchronize(); }
  void give_to_graph(StreamRef stream, void (*release)(void*), void* owned) override {
    cuda::give_to_graph(stream, release, owned);
  }

 protected:
  const int index_;

 private:
  const std::string name_;
  const uint64_t driver_;
};

class PinnedMemoryDevice final : public CudaMemoryDevice {
 public:
  explicit PinnedMemoryDevice(int device)
      : CudaMemoryDevice(device, join("page-locked host memory of cuda:", device)) {}
  void* take(size_t bytes) override {
    try {
      return cuda::allocate_pinned(bytes);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::out_of_memory) throw;
      return nullptr;
    }
  }
  void give(void* memory) noexcept override { cuda::deallocate_pinned(memory); }
  size_t total_bytes() const override { return most_pinned_bytes(); }
  size_t free_bytes() const override {
    return size_t(sysconf(_SC_AVPHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE));
  }
};

}  // namespace

size_t most_pinned_bytes() {
  return size_t(sysconf(_SC_PHYS_PAGES)) / 2 * size_t(sysconf(_SC_PAGESIZE));
}

std::unique_ptr<MemoryDevice> cuda_memory_device(int device) {
  return std::make_unique<CudaMemoryDevice>(device);
}

std::unique_ptr<MemoryDevice> pinned_memory_device(int device) {
  return std::make_unique<PinnedMemoryDevice>(device);
}

}  // namespace tensorcraft::memory
