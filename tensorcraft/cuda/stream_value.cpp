// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/stream_value.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/interrupt.hpp"
#include "tensorcraft/cuda/session.hpp"
#include "tensorcraft/cuda/wait_kernel.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

namespace tensorcraft::cuda {
namespace {

constexpr int kErrorNotSupported = 801, kErrorCaptureUnsupported = 900;

DevicePointer address(const void* pointer) { return reinterpret_cast<DevicePointer>(pointer); }

// Returns the driver's answer to a stream operation on memory; kErrorNotSupported if it has no such
// operation.
template <class Call>
int ask(const Call& call, StreamRef stream, const void* at, uint32_t value, uint32_t flags) {
  if (!call.function) return kErrorNotSupported;
  return call.status(stream.handle(), address(at), value, flags);
}

void check_recordable(int status, std::string_view what, const char* operation) {
  if (status != kErrorCaptureUnsupported) return;
  fail(ErrorKind::unsupported, what, ": the driver cannot record ", operation,
       " of a value into a graph; enqueue it before the graph's launch, or use a newer driver");
}

}  // namespace

bool is_met(WaitCondition condition, uint32_t flag, uint32_t value) {
  switch (condition) {
    case WaitCondition::at_least:
      return int32_t(flag - value) >= 0;
    case WaitCondition::equal:
      return flag == value;
    case WaitCondition::and_bits:
      return (flag & value) != 0;
    case WaitCondition::nor_bits:
      return ~(flag | value) != 0;
  }
  fail(ErrorKind::internal, "no such condition of a wait: ", int(condition));
}

void enqueue_wait(const WaitFlag& flag, WaitCondition condition, uint32_t value, StreamRef stream,
                  const Timeout& timeout, std::string_view what) {
  const DeviceGuard guard(stream.device());
  const Driver& driver = require_driver();
  if (!timeout) {
    const int status =
        ask(driver.stream_wait_value, stream, flag.value, value, uint32_t(condition));
    check_recordable(status, what, "a wait");
    if (status != kErrorNotSupported) return check(status, driver.stream_wait_value.name);
  }
  launch_wait_kernel({.flag = flag.value,
                      .abort = flag.abort,
                      .timed_out = flag.timed_out,
                      .limit_ns = timeout ? std::max<int64_t>(timeout->count(), 1) : 0,
                      .value = value,
                      .condition = uint32_t(condition)},
                     stream, what);
}

void enqueue_write(uint32_t* flag, uint32_t value, StreamRef stream, std::string_view what) {
  const DeviceGuard guard(stream.device());
  const Driver& driver = require_driver();
  const int status = ask(driver.stream_write_value, stream, flag, value, 0);
  check_recordable(status, what, "a write");
  if (status == kErrorNotSupported)
    fail(ErrorKind::unsupported, what,
         ": the driver cannot write a value in the order of a "
         "stream; write the flag by a copy or a kernel");
  check(status, driver.stream_write_value.name);
}

bool wait_on_host(const uint32_t* flag, WaitCondition condition, uint32_t value,
                  const Timeout& timeout) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kSpin = std::chrono::microseconds(50), kNap = std::chrono::microseconds(50);
  // atomic_ref takes no const; nothing is written.
  const std::atomic_ref<uint32_t> now(*const_cast<uint32_t*>(flag));
  const auto begin = Clock::now();
  while (!is_met(condition, now.load(std::memory_order_acquire), value)) {
    const auto waited = Clock::now() - begin;
    if (timeout && waited >= *timeout) return false;
    if (waited < kSpin)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kNap);
    check_interrupt();
  }
  return true;
}

}  // namespace tensorcraft::cuda
