// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/runtime/dispatch/controller.hpp"
#include "tensorcraft/runtime/dispatch/recorder.hpp"

#include <atomic>
#include <string_view>
#include <vector>

// Watches launches on this process's GPUs: how many may be in flight, on behalf of which task they
// run, and what was last when a device failed. Launches are watched while a limit is set, a task
// runs, or they are recorded; else a launch costs no more than a load. All is safe from any thread.
namespace tensorcraft::dispatch {

// At most so many launches of the stream are in flight: the next one waits on the host. 0: none.
// Kind value below 0, unsupported without a GPU. A limit of a Stream goes with it.
void set_limit(StreamRef stream, int limit);
int limit(StreamRef stream);

// Watches every launch from now on, or no more than limits and tasks need.
void record_launches(bool enabled);
// Counts the launches that were watched, on the emulator too, where each has ended when it
// returns. Launches of a stream that no Stream owns may count as in flight until some more are
// launched on it.
Counts counts();
// The last launches, at most 1,000, the newest first.
std::vector<Launch> recent(size_t count = Recorder::kLaunches);

// While it lives, launches of this thread are the task's. Once `cancelled` is set they are refused:
// kind cancelled. Tasks nest; the inner one counts.
class TaskScope {
 public:
  // `cancelled` outlives it.
  explicit TaskScope(TaskId id, const std::atomic<bool>* cancelled = nullptr);
  ~TaskScope();
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;

 private:
  TaskId outer_;
  const std::atomic<bool>* outer_cancelled_;
};
// Returns the task of the innermost scope of this thread; 0 without.
TaskId current_task();

// Kind cancelled if the task of this thread was cancelled. A call that computes on the host asks
// first, as it has no launch that is refused.
void refuse_cancelled(std::string_view what);

// The emulator calls these for a kernel that it runs: before it, and after it.
bool is_watching() noexcept;
void before_simt_launch(std::string_view what, Dim3 grid, Dim3 block);
void after_simt_launch(std::string_view what, Dim3 grid, Dim3 block) noexcept;

}  // namespace tensorcraft::dispatch
