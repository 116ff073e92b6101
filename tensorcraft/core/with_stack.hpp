// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace tensorcraft {

// Usual threads have so much, and compilers and other libraries may expect it.
inline constexpr size_t kAmpleStack = size_t(1) << 20;

// Bytes that the calling thread has left on its stack; as many as there can be on a stack that the
// system does not know, such as a fiber's.
size_t stack_left();

// Runs the work: here, if the calling thread has so many bytes of stack left, else on a thread that
// has, and waits for it. Throws what the work throws, and kind out_of_memory for `who` if no such
// thread starts.
void run_with_stack(std::string_view who, size_t bytes, const std::function<void()>& work);

// Runs the work so, and gives what it gives.
template <class Work>
auto with_stack(std::string_view who, size_t bytes, Work&& work) {
  std::optional<decltype(work())> result;
  run_with_stack(who, bytes, [&] { result.emplace(work()); });
  return std::move(*result);
}

}  // namespace tensorcraft
