// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/dispatch/recorder.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/launch_watcher.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <type_traits>

namespace tensorcraft::dispatch {

static_assert(std::is_trivially_copyable_v<Launch>, "a launch is kept as words");

std::string_view to_string(Outcome outcome) {
  constexpr std::string_view kNames[] = {"launched", "failed", "cancelled"};
  return kNames[size_t(outcome)];
}

std::array<char, 40> Launch::short_name(std::string_view name) {
  std::array<char, 40> cut{};
  std::ranges::copy(name.substr(0, cut.size() - 1), cut.begin());
  return cut;
}

void Recorder::note(const Launch& launch) noexcept {
  const uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
  Slot& slot = slots_[number % kSlots];
  uint64_t before = slot.state.load(std::memory_order_relaxed);
  if (before % 2 == 1 ||
      !slot.state.compare_exchange_strong(before, 2 * number + 1, std::memory_order_acquire))
    return;
  uint64_t words[kWords] = {};
  std::memcpy(words, &launch, sizeof(Launch));
  for (size_t i = 0; i < kWords; ++i) slot.words[i].store(words[i], std::memory_order_release);
  slot.state.store(2 * number + 2, std::memory_order_release);
}

std::vector<Launch> Recorder::last(size_t count) const {
  std::vector<Launch> all;
  const uint64_t end = next_.load(std::memory_order_acquire);
  const uint64_t most = std::min<uint64_t>({end, kLaunches, count});
  for (uint64_t number = end; number-- > end - most;) {
    const Slot& slot = slots_[number % kSlots];
    const uint64_t state = slot.state.load(std::memory_order_acquire);
    uint64_t words[kWords];
    for (size_t i = 0; i < kWords; ++i) words[i] = slot.words[i].load(std::memory_order_acquire);
    // Not written yet, dropped, or overwritten meanwhile.
    if (state != 2 * number + 2 || slot.state.load(std::memory_order_relaxed) != state) continue;
    std::memcpy(&all.emplace_back(), words, sizeof(Launch));
  }
  return all;
}

namespace {

std::string text_of(const Dim3& d) { return join('(', d.x, ", ", d.y, ", ", d.z, ')'); }

// The lines of all launches, in a new file that nobody else may read; its path, empty if there is
// none.
std::string write_file(const std::vector<Launch>& newest_first, Time now) {
  std::error_code error;
  std::string path = std::filesystem::temp_directory_path(error) / "tensorcraft-launches-XXXXXX";
  const int file = error ? -1 : mkstemp(path.data());
  if (file < 0) return {};
  std::string text;
  for (const Launch& launch : newest_first) text += describe(launch, now) + '\n';
  const bool is_written = write(file, text.data(), text.size()) == ssize_t(text.size());
  close(file);
  return is_written ? path : std::string();
}

}  // namespace

std::string describe(const Launch& launch, Time now) {
  const std::string kernel = cuda::name_of_kernel(launch.kernel);
  return join(launch.name.data(), kernel.empty() ? "" : " (", kernel, kernel.empty() ? "" : ")",
              launch.outcome == Outcome::launched ? "" : ", ",
              launch.outcome == Outcome::launched ? "" : to_string(launch.outcome), ", grid ",
              text_of(launch.grid), ", block ", text_of(launch.block), ", on ", launch.device,
              ", stream ", static_cast<const void*>(launch.stream), ", ",
              launch.task ? join("task ", launch.task) : "no task", ", ",
              (now - launch.at).count() / 1000, " us before");
}

std::string report(const std::vector<Launch>& newest_first, Time now) {
  constexpr size_t kLines = 8;
  if (newest_first.empty()) return {};
  const std::string path = write_file(newest_first, now);
  std::string text =
      join("\nthe last launches, the newest first",
           path.empty() ? "" : join(" (all ", newest_first.size(), " in ", path, ')'), ':');
  for (size_t i = 0; i < std::min(kLines, newest_first.size()); ++i)
    text += "\n  " + describe(newest_first[i], now);
  return text;
}

}  // namespace tensorcraft::dispatch
