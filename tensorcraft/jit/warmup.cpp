// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/warmup.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/usable_cores.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/jit/host_compiler.hpp"
#include "tensorcraft/jit/kernel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace tensorcraft::jit {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

std::vector<KernelKey> without_repeats(std::span<const KernelKey> kernels) {
  std::vector<KernelKey> all;
  for (const KernelKey& key : kernels)
    if (std::ranges::find(all, key) == all.end()) all.push_back(key);
  return all;
}

// Steps on their way from the workers to the thread that called. Workers stop taking kernels once
// it is gone.
class Steps {
 public:
  void put(WarmupStep step) {
    {
      const std::lock_guard lock(mutex_);
      steps_.push_back(std::move(step));
    }
    ready_.notify_one();
  }
  WarmupStep take() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return !steps_.empty(); });
    WarmupStep step = std::move(steps_.front());
    steps_.pop_front();
    return step;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<WarmupStep> steps_;
};

// Compiles into the disk cache; was it there already?
bool compile_to_disk(const KernelKey& key, std::string_view arch) {
  const CompileReport report = compile(key, arch);
  if (!report.on_disk)
    fail(ErrorKind::io,
         "it compiles, but the cache folder does not take it; free space on its disk, or set "
         "TENSORCRAFT_CACHE_DIR to another folder");
  return report.from_disk;
}

WarmupStep prepare(const KernelKey& key, std::string_view arch, std::optional<Device> device) {
  WarmupStep step;
  const auto begin = Clock::now();
  try {
    step.name = readable_name(key);
    step.from_disk = !device                     ? compile_to_disk(key, arch)
                     : *device == Device::simt() ? !load_host_kernel(key)
                                                 : !load_kernel(key, *device);
  } catch (const std::exception& error) {
    step.error = error.what();
  }
  step.milliseconds = milliseconds_since(begin);
  return step;
}

WarmupReport run(std::span<const KernelKey> listed, std::string_view arch,
                 std::optional<Device> device, const WarmupCallback& progress, int threads) {
  if (threads < 0) fail(ErrorKind::value, "warmup: threads must be 0 or more, got ", threads);
  const auto begin = Clock::now();
  const std::vector<KernelKey> kernels = without_repeats(listed);
  WarmupReport report;
  Steps steps;
  std::atomic<size_t> next = 0;
  const size_t workers = std::min(size_t(threads == 0 ? usable_cores() : threads), kernels.size());
  std::vector<std::jthread> pool;
  pool.reserve(workers);
  // Joined before anything that they use goes; `next` at the end sends them home.
  struct Stop {
    std::atomic<size_t>& next;
    size_t end;
    ~Stop() { next = end; }
  };
  const auto work = [&] {
    for (size_t i = next++; i < kernels.size(); i = next++)
      steps.put(prepare(kernels[i], arch, device));
  };
  const Stop stop{next, kernels.size()};
  try {
    while (pool.size() < workers) pool.emplace_back(work);
  } catch (const std::system_error&) {
    if (pool.empty()) work();  // no thread can be started: the caller compiles, and reports after
  }
  for (size_t done = 1; done <= kernels.size(); ++done) {
    WarmupStep step = steps.take();
    step.done = done;
    step.total = kernels.size();
    if (step.error.empty()) ++(step.from_disk ? report.from_disk : report.compiled);
    if (progress) progress(step);
    if (!step.error.empty()) report.failures.push_back(std::move(step));
  }
  report.seconds = milliseconds_since(begin) * 1e-3;
  return report;
}

}  // namespace

WarmupReport warmup(std::span<const KernelKey> kernels, std::string_view arch,
                    const WarmupCallback& progress, int threads) {
  return run(kernels, arch, std::nullopt, progress, threads);
}

WarmupReport warmup(std::span<const KernelKey> kernels, Device device,
                    const WarmupCallback& progress, int threads) {
  if (!device.is_cuda() && device != Device::simt())
    fail(ErrorKind::value, "warmup: kernels are compiled for CUDA devices and the emulator, got ",
         device);
  return run(kernels, device_info(device).arch(), device, progress, threads);
}

}  // namespace tensorcraft::jit
