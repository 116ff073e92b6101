// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/cuda/launch_watcher.hpp"

#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace tensorcraft::cuda {
namespace {

constinit std::atomic<LaunchWatcher*> watcher_now = nullptr;

struct Names {
  ForkSafeMutex mutex;
  std::unordered_map<const void*, std::string> of;
};
Names& names() {
  static constinit FirstMade<Names> one;
  return *one;
}

}  // namespace

LaunchWatcher* launch_watcher() noexcept { return watcher_now.load(std::memory_order_acquire); }

void watch_launches(LaunchWatcher* watcher) noexcept { watcher_now = watcher; }

void name_kernel(const void* kernel, std::string name) {
  const std::lock_guard lock(names().mutex);
  names().of[kernel] = std::move(name);
}

std::string name_of_kernel(const void* kernel) {
  const std::lock_guard lock(names().mutex);
  const auto found = names().of.find(kernel);
  return found == names().of.end() ? std::string() : found->second;
}

}  // namespace tensorcraft::cuda
