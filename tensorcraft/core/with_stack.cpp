// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/with_stack.hpp"

#include "tensorcraft/core/error.hpp"

#include <pthread.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>

namespace tensorcraft {
namespace {

struct Range {
  uintptr_t begin = 0, end = 0;
};

// Empty if the system does not tell it.
Range own_stack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* lowest = nullptr;
  size_t bytes = 0, guard = 0;
  pthread_attr_getstack(&attributes, &lowest, &bytes);
  pthread_attr_getguardsize(&attributes, &guard);
  pthread_attr_destroy(&attributes);
  const auto begin = reinterpret_cast<uintptr_t>(lowest);
  return {begin + guard, begin + bytes};
}

struct Call {
  const std::function<void()>& work;
  std::exception_ptr error;

  static void* run(void* call) {
    auto& self = *static_cast<Call*>(call);
    try {
      self.work();
    } catch (...) {
      self.error = std::current_exception();
    }
    return nullptr;
  }
};

}  // namespace

size_t stack_left() {
  thread_local const Range stack = own_stack();
  const auto at = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return at > stack.begin && at < stack.end ? at - stack.begin : std::numeric_limits<size_t>::max();
}

void run_with_stack(std::string_view who, size_t bytes, const std::function<void()>& work) {
  const size_t left = stack_left();
  if (left >= bytes) return work();
  constexpr size_t kUsual = size_t(8) << 20;  // of a program's first thread
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, bytes < kUsual ? kUsual : bytes);
  Call call{work, nullptr};
  pthread_t thread;
  const int problem = pthread_create(&thread, &attributes, &Call::run, &call);
  pthread_attr_destroy(&attributes);
  if (problem != 0)
    fail(ErrorKind::out_of_memory, who, ": the calling thread has ", left, " bytes of stack left, ",
         bytes, " are needed, and the system starts no thread that has them (",
         std::strerror(problem), "); call it from a thread with a larger stack");
  pthread_join(thread, nullptr);
  if (call.error) std::rethrow_exception(call.error);
}

}  // namespace tensorcraft
