// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/device.hpp"
#include "tensorcraft/cuda/kernel_config.hpp"
#include "tensorcraft/cuda/stream.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::dispatch {

// A duration, or the time since the process's steady clock began.
using Time = std::chrono::nanoseconds;
using TaskId = uint64_t;  // 0: of no task

// The outcome of a launch, as the thread that made it saw it.
enum class Outcome : uint32_t { launched, failed, cancelled };
// The name, as messages spell it.
std::string_view to_string(Outcome outcome);

// One launch, as the recorder keeps it.
struct Launch {
  // These fields say what ran where and when, and on behalf of which task.
  std::array<char, 40> name{};   // the operator or the user's kernel, cut off, with a NUL
  const void* kernel = nullptr;  // for cuda::name_of_kernel(), on a GPU
  Dim3 grid{}, block{};
  CUstream_st* stream = nullptr;
  Device device{};
  Outcome outcome = Outcome::launched;
  TaskId task = 0;
  Time at{0};
  // Cuts a name off.
  static std::array<char, 40> short_name(std::string_view name);
};

// The last launches of all threads. A note takes no lock and waits for nobody; if a thread stands
// still in the middle of one, the note that would overwrite it is dropped.
class Recorder {
 public:
  // How many it keeps; one more.
  static constexpr size_t kLaunches = 1000;
  void note(const Launch& launch) noexcept;
  // At most so many, the newest first.
  std::vector<Launch> last(size_t count = kLaunches) const;

 private:
  static constexpr size_t kSlots = 1024;
  static constexpr size_t kWords = (sizeof(Launch) + 7) / 8;
  struct Slot {
    std::atomic<uint64_t> state = 0;  // 2 n + 1 while launch n is written, 2 n + 2 after it
    std::array<std::atomic<uint64_t>, kWords> words{};
  };
  std::array<Slot, kSlots> slots_;
  std::atomic<uint64_t> next_ = 0;
};

// "softmax (kernel), grid (1, 1, 1), ..., 12 us before", for reports.
std::string describe(const Launch& launch, Time now);
// Describes the last launches for an error: a few, and the file that has all. Empty without any.
std::string report(const std::vector<Launch>& newest_first, Time now);

}  // namespace tensorcraft::dispatch
