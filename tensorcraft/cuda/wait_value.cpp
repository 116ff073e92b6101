// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/wait_value.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/tensor_matcher.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/cuda/stream_value.hpp"

#include <atomic>

namespace tensorcraft {
namespace {

void check(const TensorView& flag, std::string_view what) {
  if (flag.size() == 0)
    fail(ErrorKind::value, what, ": wait_flag expects a non-empty tensor. It has shape ",
         flag.shape());
  TensorMatcher({kAnySize}).with_any_strides().with_dtype(DType::int32).verify(flag, what, "flag");
}

// The stream that a flag is for; none: the calling thread.
std::optional<StreamRef> stream_of(const TensorView& flag, std::optional<StreamRef> given) {
  if (given || !flag.device().is_cuda()) return given;
  return current_stream(flag.device().index);
}

// Who writes there has asked whether it may.
uint32_t* seen_by(StreamRef stream, const TensorView& flag, std::string_view what) {
  if (flag.device().is_cuda()) return const_cast<uint32_t*>(flag.data_as<const uint32_t>());
  auto* const there = static_cast<uint32_t*>(cuda::device_address(flag.data(), stream.device()));
  if (!there)
    fail(ErrorKind::value, what, ": flag: cuda:", stream.device(),
         " cannot reach the memory of the host where it lies: it is not page-locked; make it with "
         "tc.memory.pinned(), or on the GPU");
  return there;
}

}  // namespace

void stream_wait_value(const TensorView& flag, int32_t value, const WaitValueOptions& options) {
  constexpr std::string_view kName = "stream_wait_value";
  check(flag, kName);
  const std::optional<StreamRef> stream = stream_of(flag, options.stream);
  if (!stream) {
    cuda::wait_on_host(flag.data_as<const uint32_t>(), options.condition, uint32_t(value), {});
    return;
  }
  cuda::enqueue_wait({.value = seen_by(*stream, flag, kName)}, options.condition, uint32_t(value),
                     *stream, {}, kName);
}

void stream_write_value(const TensorView& flag, int32_t value, std::optional<StreamRef> given) {
  constexpr std::string_view kName = "stream_write_value";
  check(flag, kName);
  if (flag.read_only())
    fail(ErrorKind::buffer, kName, ": flag: the tensor is read-only; give writable memory");
  const std::optional<StreamRef> stream = stream_of(flag, given);
  if (!stream)
    return std::atomic_ref(*flag.data_as<uint32_t>())
        .store(uint32_t(value), std::memory_order_release);
  cuda::enqueue_write(seen_by(*stream, flag, kName), uint32_t(value), *stream, kName);
}

}  // namespace tensorcraft
