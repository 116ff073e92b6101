// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/kernel_config.hpp"
#include "tensorcraft/cuda/stream.hpp"

#include <string>
#include <string_view>

// How a layer above sees what is launched. As long as nobody watches, a launch costs one load more.
namespace tensorcraft::cuda {

// Describes a launch.
struct LaunchNote {
  std::string_view what;         // the operator, or the name of a user's kernel; "graph"
  const void* kernel = nullptr;  // for name_of_kernel()
  Dim3 grid{}, block{};
  StreamRef stream{};
  bool is_recorded = false;  // into a graph, and does not run now
};

// Called on the thread that launches.
class LaunchWatcher {
 public:
  // May wait; what it throws, the launch throws, and nothing is launched.
  virtual void before(const LaunchNote& note) = 0;
  // The driver took it, or refused.
  virtual void after(const LaunchNote& note, bool launched) noexcept = 0;

 protected:
  ~LaunchWatcher() = default;  // the process has one, which stays
};

// Null if nobody watches.
LaunchWatcher* launch_watcher() noexcept;
void watch_launches(LaunchWatcher* watcher) noexcept;
// Runs the launch between the two calls of a watcher; `launch` gives the driver's status.
template <class Launch>
int watched(LaunchWatcher& watcher, const LaunchNote& note, Launch&& launch) {
  watcher.before(note);
  int status = 0;
  try {
    status = launch();
  } catch (...) {  // the driver was not asked
    watcher.after(note, false);
    throw;
  }
  watcher.after(note, status == 0);
  return status;
}

// Kernels of handles, by the name that explain() prints. A handle is used again once its kernel is
// unloaded, and has the last name.
void name_kernel(const void* kernel, std::string name);
std::string name_of_kernel(const void* kernel);

// `text` is called once, when the first error was seen after which CUDA cannot be used, and that
// error's text ends with what it gives. One for the process.
void on_device_lost(std::string (*text)());

}  // namespace tensorcraft::cuda
